"""Wallets that an address signs for: itself, and the Safe that the factory makes for it."""

from collections import OrderedDict
from typing import Final

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.errors.order import WrongWallet
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.values.hexadecimal import Address

WALLETS_KEPT_MAX: Final = 20_000


class Wallets:
    """Where each address's wallets are."""

    def __init__(self, deployment: Deployment, *, kept_max: int = WALLETS_KEPT_MAX) -> None:
        self._deployment = deployment
        self._kept_max = kept_max
        self._safe_by_owner: OrderedDict[Address, Address] = OrderedDict()

    def safe_of(self, owner: Address) -> Address:
        """Return where the owner's Safe is, or would be."""
        safe = self._safe_by_owner.get(owner)
        if safe is None:
            safe = self._safe_by_owner[owner] = self._deployment.safe_of(owner)
            if len(self._safe_by_owner) > self._kept_max:
                self._safe_by_owner.popitem(last=False)
        return safe

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
