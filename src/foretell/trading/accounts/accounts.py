"""Which wallets an address trades with, and what the exchange knows of them.

An address signs; a wallet pays: the address itself (signature type 0), or the Safe that the factory
makes for it (type 2). What is said here spares a client every guess.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.wallets import Wallets
from foretell.domain.errors.families import Upstream
from foretell.domain.errors.order import InvalidOrderNonce
from foretell.domain.exchange.order import SERVED_SIGNATURE_TYPES, SignedOrder
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.engine.protocol.requests import AccountReply
from foretell.runtime.lru import LruCache

NONCES_KEPT_MAX: Final = 20_000
NONCE_KEPT_MS: Final = 30_000
NONCE_LOOK_AGAIN_MS: Final = 1_000
UNLIMITED: Final = str(2**256 - 1)

FetchNonce = Callable[[Address, Address], Awaitable[int]]
"""Asks the chain for a wallet's nonce at an exchange."""
FetchHasCode = Callable[[Address], Awaitable[bool]]
"""Asks the chain whether there is a contract at an address."""


class _Seen(NamedTuple):
    nonce: int
    at_ms: int


class OrderNonces:
    """The makers' nonces at the exchanges: an order signed for another one can never settle.

    A nonce is asked of the chain when its maker is first seen and then every 30 seconds at most. An
    order that does not fit makes us look again at once, unless we did within the last second. So a
    maker who raised the nonce is believed at once, and whose old orders come in is refused within
    half a minute. What slips through leaves the book when the block that raised it is indexed.
    """

    def __init__(
        self, fetch: FetchNonce, now_ms: Callable[[], int], *, kept_max: int = NONCES_KEPT_MAX
    ) -> None:
        self._fetch = fetch
        self._now_ms = now_ms
        self._seen: LruCache[tuple[Address, Address], _Seen] = LruCache(kept_max)

    async def look_up(self, exchange: Address, maker: Address, kept_ms: int) -> int:
        """Return a maker's nonce as it was at most so long ago, or as last seen if none answers."""
        seen = self._seen.get((exchange, maker))
        if seen is not None and self._now_ms() - seen.at_ms < kept_ms:
            return seen.nonce
        try:
            nonce = await self._fetch(exchange, maker)
        except Upstream:
            if seen is None:
                raise
            return seen.nonce
        self._seen.put((exchange, maker), _Seen(nonce, self._now_ms()))
        return nonce

    async def check(self, exchange: Address, order: SignedOrder) -> None:
        """Refuse an order whose nonce is not its maker's."""
        wanted = await self.look_up(exchange, order.maker, NONCE_KEPT_MS)
        if order.nonce != wanted:
            wanted = await self.look_up(exchange, order.maker, NONCE_LOOK_AGAIN_MS)
        if order.nonce != wanted:
            raise InvalidOrderNonce(order.nonce, wanted)


class BalanceRecord(msgspec.Struct, frozen=True):
    """What a wallet holds of an asset and lets the exchanges move, in base units.

    `balance` is what it can trade with: what the chain confirmed, and what unsettled trades bring
    and take (`pending`). `reserved` is the part of it that open orders hold.
    """

    balance: str
    allowances: dict[str, str]
    allowance: str
    wallet: str
    confirmed: str
    pending: str
    reserved: str
    as_of_block: int


def balance_record(
    wallet: Address, view: AccountReply, exchanges: Sequence[Address], exchange: Address
) -> BalanceRecord:
    """Return what the ledger knows of a wallet's asset; the view is of these exchanges.

    The one allowance of older clients is that of the exchange which trades the asset: of
    collateral it is the standard one.
    """
    text_by_exchange = {
        each: _allowance_text(units)
        for each, units in zip(exchanges, view.allowed_units, strict=True)
    }
    return BalanceRecord(
        balance=str(max(view.confirmed_units + view.pending_units, 0)),
        allowances={checksum_address(each): text for each, text in text_by_exchange.items()},
        allowance=text_by_exchange[exchange],
        wallet=checksum_address(wallet),
        confirmed=str(view.confirmed_units),
        pending=str(view.pending_units),
        reserved=str(view.reserved_units),
        as_of_block=view.observed_block,
    )


def _allowance_text(units: int) -> str:
    """Return an allowance; one that the ledger cannot count is what unlimited ones look like."""
    return UNLIMITED if units >= AMOUNT_UNITS_MAX else str(units)


class WalletRecord(msgspec.Struct, frozen=True, rename="camel"):
    """One way for an address to trade, spelled out."""

    kind: str
    address: str
    is_deployed: bool
    signature_type: int
    maker: str
    signer: str
    nonce: str


class DomainRecord(msgspec.Struct, frozen=True, rename="camel"):
    """A domain that orders may be signed for."""

    struct_version: int
    name: str
    version: str
    chain_id: int
    verifying_contract: str


class ExchangeRecord(msgspec.Struct, frozen=True, rename="camel"):
    """An exchange, the domains that it takes, and each wallet's nonce there, by the wallet."""

    address: str
    neg_risk: bool
    domains: list[DomainRecord]
    nonces: dict[str, str]


class AccountRecord(msgspec.Struct, frozen=True, rename="camel"):
    """Everything a client must know to sign an order for an address.

    `exchange`, `domains` and the wallets' nonces are of the standard exchange; `exchanges` has all.
    """

    address: str
    chain_id: int
    exchange: str
    domains: list[DomainRecord]
    wallets: list[WalletRecord]
    exchanges: list[ExchangeRecord]


async def account_record(
    deployment: Deployment,
    wallets: Wallets,
    nonces: OrderNonces,
    fetch_has_code: FetchHasCode,
    address: Address,
) -> AccountRecord:
    """Return how an address can trade here; asks the chain for what may have changed."""
    wallet_by_type = {
        served: wallets.by_signature_type(address, served) for served in SERVED_SIGNATURE_TYPES
    }
    exchanges = [
        await _exchange_record(deployment, nonces, exchange, tuple(wallet_by_type.values()))
        for exchange in deployment.exchanges
    ]
    standard = exchanges[0]
    return AccountRecord(
        address=checksum_address(address),
        chain_id=deployment.chain_id,
        exchange=standard.address,
        domains=standard.domains,
        wallets=[
            WalletRecord(
                kind=SERVED_SIGNATURE_TYPES[signature_type].lower(),
                address=checksum_address(wallet),
                is_deployed=wallet == address or await fetch_has_code(wallet),
                signature_type=int(signature_type),
                maker=checksum_address(wallet),
                signer=checksum_address(address),
                nonce=standard.nonces[checksum_address(wallet)],
            )
            for signature_type, wallet in wallet_by_type.items()
        ],
        exchanges=exchanges,
    )


async def _exchange_record(
    deployment: Deployment, nonces: OrderNonces, exchange: Address, wallets: Sequence[Address]
) -> ExchangeRecord:
    return ExchangeRecord(
        address=checksum_address(exchange),
        neg_risk=exchange != deployment.exchange,
        domains=[
            DomainRecord(
                struct_version=profile.struct_version,
                name=profile.name,
                version=profile.version,
                chain_id=deployment.chain_id,
                verifying_contract=checksum_address(profile.verifying_contract or exchange),
            )
            for profile in deployment.profiles_of(exchange)
        ],
        nonces={
            checksum_address(wallet): str(
                await nonces.look_up(exchange, wallet, NONCE_LOOK_AGAIN_MS)
            )
            for wallet in wallets
        },
    )


@dataclass(frozen=True, slots=True)
class ChainView:
    """What is asked of the chain when orders come in."""

    fetch_nonce: FetchNonce
    fetch_has_code: FetchHasCode
