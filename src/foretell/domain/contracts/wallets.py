"""The wallets that an address signs for: itself, and its Safe of the factory."""

from functools import lru_cache
from typing import Final

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.errors.order import WrongWallet
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.values.hexadecimal import Address

WALLETS_KEPT_MAX: Final = 20_000


class Wallets:
    """The wallets of any address; the most recent are cached, since one costs three hashes."""

    def __init__(self, deployment: Deployment, *, kept_max: int = WALLETS_KEPT_MAX) -> None:
        self._safe_of = lru_cache(kept_max)(deployment.safe_of)

    def safe_of(self, owner: Address) -> Address:
        """Return the address of the owner's Safe, deployed or not."""
        return self._safe_of(owner)

    def of(self, address: Address) -> tuple[Address, Address]:
        """Return the wallets that an address trades with: itself and its Safe."""
        return address, self.safe_of(address)

    def by_signature_type(self, address: Address, signature_type: int) -> Address:
        """Return the wallet of an address that a signature type stands for."""
        return self.safe_of(address) if signature_type == SignatureType.SAFE else address

    def check_maker(self, order: SignedOrder) -> None:
        """Refuse an order with a maker that its signer does not own."""
        wanted = self.by_signature_type(order.signer, order.signature_type)
        if order.maker != wanted:
            raise WrongWallet(order.maker, wanted)
