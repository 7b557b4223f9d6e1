"""The wallets that an address signs for: itself, its Safe, its proxy wallet and its deposit wallets."""

from functools import lru_cache
from typing import Final

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.errors.order import NoDepositWallets, UnsupportedSignatureType, WrongWallet
from foretell.domain.exchange.order import SERVED_SIGNATURE_TYPES, SignatureType, SignedOrder
from foretell.domain.values.hexadecimal import Address

WALLETS_KEPT_MAX: Final = 20_000

SECOND_FACTORY_DIALECT: Final = "poly_"
"""The prefix of the headers of clients that contain the address of the second factory."""


class Wallets:
    """The wallets of any address; the most recent are cached, since one costs three hashes."""

    def __init__(self, deployment: Deployment, *, kept_max: int = WALLETS_KEPT_MAX) -> None:
        self._safe_of = lru_cache(kept_max)(deployment.safe_of)
        self._deposit_wallets_of = lru_cache(kept_max)(deployment.deposit_wallets_of)
        self._proxy_wallet_of = lru_cache(kept_max)(deployment.proxy_wallet_of)
        self.has_proxy_wallets = deployment.proxy_wallet_factory is not None
        self.has_deposit_wallets = bool(deployment.deposit_wallet_factories)

    @property
    def served_types(self) -> dict[SignatureType, str]:
        """The signature types of this deployment's wallets, and their names."""
        return {SignatureType(kind): name for kind, name in self.names_by_type.items()}

    @property
    def names_by_type(self) -> dict[int, str]:
        """The names of the served types, by the number on the wire."""
        absent = set()
        if not self.has_proxy_wallets:
            absent.add(SignatureType.PROXY)
        if not self.has_deposit_wallets:
            absent.add(SignatureType.CONTRACT)
        return {kind: name for kind, name in SERVED_SIGNATURE_TYPES.items() if kind not in absent}

    def safe_of(self, owner: Address) -> Address:
        """Return the address of the owner's Safe, deployed or not."""
        return self._safe_of(owner)

    def proxy_wallet_of(self, owner: Address) -> Address:
        """Return the address of the owner's proxy wallet, or refuse where there are none."""
        if not self.has_proxy_wallets:
            raise UnsupportedSignatureType(SignatureType.PROXY, self.names_by_type)
        return self._proxy_wallet_of(owner)

    def deposit_wallets_of(self, owner: Address) -> tuple[Address, ...]:
        """Return the addresses of the owner's deposit wallets, one of each factory, deployed or not."""
        return self._deposit_wallets_of(owner)

    def of(self, address: Address) -> tuple[Address, ...]:
        """Return the wallets that an address trades with: itself, its Safe, its deposit and proxy wallets."""
        proxies = (self._proxy_wallet_of(address),) if self.has_proxy_wallets else ()
        return address, self.safe_of(address), *self.deposit_wallets_of(address), *proxies

    def by_signature_type(
        self, address: Address, signature_type: int, dialect: str = ""
    ) -> Address:
        """Return the wallet of an address that a signature type stands for.

        Of two deposit wallets it is the one that clients of the dialect derive.
        """
        if signature_type == SignatureType.SAFE:
            return self.safe_of(address)
        if signature_type == SignatureType.PROXY:
            return self.proxy_wallet_of(address)
        if signature_type != SignatureType.CONTRACT:
            return address
        wallets = self.deposit_wallets_of(address)
        if not wallets:
            raise NoDepositWallets
        return wallets[-1 if dialect == SECOND_FACTORY_DIALECT else 0]

    def check_maker(self, order: SignedOrder) -> None:
        """Refuse an order with a maker that its signer does not own."""
        wanted = self.by_signature_type(order.signer, order.signature_type)
        if order.maker == wanted:
            return
        is_wallet = order.signature_type == SignatureType.CONTRACT
        if not is_wallet or order.maker not in self.deposit_wallets_of(order.signer):
            raise WrongWallet(order.maker, wanted)
