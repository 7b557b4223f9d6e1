"""Wallets that an address signs for: itself, and the Safe that the factory makes for it."""

from functools import lru_cache
from typing import Final

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.errors.order import WrongWallet
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.values.hexadecimal import Address

WALLETS_KEPT_MAX: Final = 20_000


class Wallets:
    """The wallets of every address; the newest are kept, since one costs three hashes to compute."""

    def __init__(self, deployment: Deployment, *, kept_max: int = WALLETS_KEPT_MAX) -> None:
        self._safe_of = lru_cache(kept_max)(deployment.safe_of)

    def safe_of(self, owner: Address) -> Address:
        """Return where the owner's Safe is, or would be."""
        return self._safe_of(owner)

    def of(self, address: Address) -> tuple[Address, Address]:
        """Return the wallets that an address trades with: itself and its Safe."""
        return address, self.safe_of(address)

    def by_signature_type(self, address: Address, signature_type: int) -> Address:
        """Return the wallet that an address means by a signature type."""
        return self.safe_of(address) if signature_type == SignatureType.SAFE else address

    def check_maker(self, order: SignedOrder) -> None:
        """Refuse an order that somebody else would pay for."""
        wanted = self.by_signature_type(order.signer, order.signature_type)
        if order.maker != wanted:
            raise WrongWallet(order.maker, wanted)
