"""Answers of the trading API, and orders before they are signed."""

from typing import Any, Final

import msgspec

from foretell.domain.errors.command import BuilderNotSigned, NoSuchWallet, StructNotAccepted
from foretell.domain.exchange.order import OrderType, Side, SignatureType
from foretell.domain.values.eip712 import Eip712Domain
from foretell.domain.values.hexadecimal import ZERO_BYTES32, parse_address
from foretell.sdk.amounts import OrderAmounts, budget_amounts, limit_amounts

STRUCT_VERSIONS: Final = (1, 2)
"""The versions of the order struct that can be signed here, the preferred one first.

Version 1 binds the expiration, the nonce and the highest fee by the signature.
"""
CONTRACT_STRUCT_VERSION: Final = 2
"""The version that a deposit wallet signs."""
BUILDER_STRUCT_VERSION: Final = 2
"""The version that has a builder and metadata."""


class DomainTerms(msgspec.Struct, frozen=True, rename="camel"):
    """A domain that orders may be signed for."""

    struct_version: int
    name: str
    version: str
    chain_id: int
    verifying_contract: str


class ExchangeTerms(msgspec.Struct, frozen=True, rename="camel"):
    """An exchange, its domains, and the nonces there by wallet."""

    address: str
    neg_risk: bool
    domains: list[DomainTerms]
    nonces: dict[str, str]

    def domain(self, struct_version: int) -> Eip712Domain:
        """Return the first domain of a version of the order struct, or refuse one that is not accepted."""
        for each in self.domains:
            if each.struct_version == struct_version:
                contract = parse_address(each.verifying_contract)
                return Eip712Domain(each.name, each.version, each.chain_id, contract)
        raise StructNotAccepted(struct_version, self.struct_versions)

    @property
    def struct_versions(self) -> list[int]:
        """The versions of the order struct that the exchange accepts."""
        return sorted({each.struct_version for each in self.domains})

    def struct_version_for(
        self, wallet: "WalletTerms", wanted: int | None, *, needs_builder: bool = False
    ) -> int:
        """Return the version to sign: the wanted one, or the first that both sides know.

        An order that needs its builder or its metadata is signed by version 2, or refused.
        """
        if wallet.is_contract:
            accepted = [CONTRACT_STRUCT_VERSION]
        else:
            accepted = [each for each in STRUCT_VERSIONS if each in self.struct_versions]
        if needs_builder and wanted not in {None, BUILDER_STRUCT_VERSION}:
            raise BuilderNotSigned(f"struct_version is {wanted}")
        if needs_builder:
            if BUILDER_STRUCT_VERSION not in accepted:
                raise BuilderNotSigned("it is not accepted here")
            return BUILDER_STRUCT_VERSION
        found = wanted or next(iter(accepted), STRUCT_VERSIONS[0])
        if found not in accepted:
            raise StructNotAccepted(found, accepted)
        return found


class WalletTerms(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that a signer can trade with."""

    kind: str
    address: str
    is_deployed: bool
    signature_type: int

    @property
    def is_contract(self) -> bool:
        """Whether it is a deposit wallet, whose orders its owner signs nested (ERC-7739)."""
        return self.signature_type == SignatureType.CONTRACT

    @property
    def is_proxy_wallet(self) -> bool:
        """Whether it is a proxy wallet, whose orders its owner signs as its own."""
        return self.signature_type == SignatureType.PROXY


class KeyDomainTerms(msgspec.Struct, frozen=True, rename="camel"):
    """The domain in which a wallet signs for an API key; it may name a contract."""

    name: str
    version: str
    chain_id: int
    verifying_contract: str | None = None


class KeyTerms(msgspec.Struct, frozen=True):
    """How a wallet signs for an API key."""

    domain: KeyDomainTerms


class AccountTerms(msgspec.Struct, frozen=True, rename="camel"):
    """The wallets of a signer, and everything that its signatures need."""

    address: str
    chain_id: int
    wallets: list[WalletTerms]
    exchanges: list[ExchangeTerms]
    auth: KeyTerms | None = None
    """None from a server that names no domain for keys."""

    def l1_domain(self) -> Eip712Domain | None:
        """Return the domain in which the wallet signs for API keys, if the server names it."""
        if self.auth is None:
            return None
        found = self.auth.domain
        contract = found.verifying_contract
        return Eip712Domain(
            found.name,
            found.version,
            found.chain_id,
            None if contract is None else parse_address(contract),
        )

    def wallet(self, kind: str) -> WalletTerms:
        """Return the wallet of a kind: `eoa` (the address itself), `safe`, `proxy wallet` or `deposit wallet`."""
        for each in self.wallets:
            if each.kind == kind:
                return each
        raise NoSuchWallet(kind, list(dict.fromkeys(each.kind for each in self.wallets)))

    def exchange(self, *, is_neg_risk: bool) -> ExchangeTerms:
        """Return the exchange of a market."""
        return next(each for each in self.exchanges if each.neg_risk is is_neg_risk)


class MarketTerms(msgspec.Struct, frozen=True):
    """The rules of a token's market for its orders."""

    tick_size: str
    is_neg_risk: bool
    fee_rate_bps: int


class PlacedOrder(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to an order; `making_amount` and `taking_amount` are what it gave and got at once."""

    success: bool
    status: str
    order_id: str = msgspec.field(name="orderID")
    making_amount: str = ""
    taking_amount: str = ""
    error_msg: str = ""
    code: str = ""
    trade_ids: list[str] = msgspec.field(name="tradeIDs", default_factory=list)
    replayed: bool = False


class CanceledOrders(msgspec.Struct, frozen=True):
    """The orders that were canceled, and why others were not."""

    canceled: list[str]
    not_canceled: dict[str, str]


class OpenOrder(msgspec.Struct, frozen=True):
    """An order as its owner reads it."""

    id: str
    status: str
    market: str
    asset_id: str
    side: str
    price: str
    original_size: str
    size_matched: str
    order_type: str
    outcome: str = ""
    close_reason: str | None = None
    created_at: int = 0


class OwnTrade(msgspec.Struct, frozen=True):
    """A trade of one's own; the amounts are its taker's."""

    id: str
    taker_order_id: str
    market: str
    asset_id: str
    side: str
    size: str
    price: str
    status: str
    match_time: str
    trader_side: str
    outcome: str = ""
    transaction_hash: str = ""
    err_msg: str | None = None
    code: str | None = None
    maker_orders: list[dict[str, Any]] = []


class Funds(msgspec.Struct, frozen=True):
    """What a wallet may trade with, in base units, as integers in text."""

    balance: str
    allowance: str
    wallet: str
    reserved: str
    allowances: dict[str, str] = {}


class BookLevel(msgspec.Struct, frozen=True):
    """The size at a price."""

    price: str
    size: str


class OrderBook(msgspec.Struct, frozen=True):
    """A token's book; the best price is the last of both lists."""

    market: str
    asset_id: str
    timestamp: str
    hash: str
    bids: list[BookLevel]
    asks: list[BookLevel]
    min_order_size: str
    tick_size: str
    neg_risk: bool
    last_trade_price: str = ""


class OrderDraft(msgspec.Struct, frozen=True, kw_only=True):
    """An order before it is signed. A BUY that takes (FOK, FAK) names a budget in place of a size."""

    token_id: str
    side: Side
    price: str
    size: str | None = None
    budget: str | None = None
    order_type: OrderType = OrderType.GTC
    expires_at_s: int = 0
    is_post_only: bool = False
    builder: str = ZERO_BYTES32
    """The code of the builder that the order is attributed to, 32 bytes; the order is signed by version 2."""
    metadata: str = ZERO_BYTES32
    """32 bytes for the caller's own use; the order is signed by version 2."""

    @property
    def needs_builder(self) -> bool:
        """Whether it has a builder or metadata, which version 1 of the struct lacks."""
        return {self.builder, self.metadata} != {ZERO_BYTES32}

    def amounts(self) -> OrderAmounts:
        """Return the two amounts, or refuse what no amounts can express."""
        if self.budget is not None:
            return budget_amounts(self.price, self.budget)
        return limit_amounts(self.side, self.price, self.size or "")


class SignedBody(msgspec.Struct, frozen=True):
    """The signed body of an order: sending it twice places it once."""

    order_id: str
    body: dict[str, Any]
