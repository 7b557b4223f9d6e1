"""Accounts: the wallets that an address trades with, their nonces and their balances.

An address signs; a wallet pays: the address itself (signature type 0), the proxy wallet or the Safe that
a factory makes for it (types 1 and 2), or a deposit wallet (type 3). An account states everything that a client needs to sign an order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, Self

import msgspec

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.wallets import Wallets
from foretell.domain.errors.families import Upstream
from foretell.domain.errors.order import InvalidOrderNonce
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.edge.header_rules import HeaderRules
from foretell.engine.protocol.requests import AccountReply
from foretell.runtime.lru import LruCache
from foretell.store.public_reads.places import client_name
from foretell.trading.accounts.wallet_checks import WalletChain

NONCES_KEPT_MAX: Final = 20_000
PUBLIC_NONCES_KEPT_MAX: Final = 2_000
NONCE_KEPT_MS: Final = 30_000
NONCE_REFETCH_MS: Final = 1_000
UNLIMITED: Final = str(2**256 - 1)

FetchNonce = Callable[[Address, Address], Awaitable[int]]
"""Fetches a wallet's nonce at an exchange from the chain."""
FetchHasCode = Callable[[Address], Awaitable[bool]]
"""Fetches from the chain whether an address has a contract."""


class _Fetched(NamedTuple):
    nonce: int
    at_ms: int
    """When the fetch began: the chain is read no earlier."""


class _Fetch(NamedTuple):
    """A fetch on the way."""

    task: asyncio.Task[int]
    at_ms: int


class OrderNonces:
    """The makers' nonces at the exchanges: an order with another nonce can never settle.

    A nonce is fetched with a maker's first order and then at most every 30 seconds. An order with
    another nonce causes a new fetch, at most one a second. So a raised nonce is accepted at once,
    and orders with the old one are refused after half a minute at the latest. Orders accepted in
    between leave the book when the block that raised the nonce is indexed.

    Requests of a client share a fetch that is on the way. Those of two clients do not: each waits for its own turn at
    the node.
    """

    def __init__(
        self, fetch: FetchNonce, now_ms: Callable[[], int], *, kept_max: int = NONCES_KEPT_MAX
    ) -> None:
        self._fetch = fetch
        self._now_ms = now_ms
        self._fetched: LruCache[tuple[Address, Address], _Fetched] = LruCache(kept_max)
        self._fetching: dict[tuple[str, Address, Address], _Fetch] = {}

    async def look_up(self, exchange: Address, maker: Address, kept_ms: int) -> int:
        """Return a maker's nonce, at most `kept_ms` old unless the chain does not answer."""
        known = self._fetched.get((exchange, maker))
        if known is not None and self._now_ms() - known.at_ms < kept_ms:
            return known.nonce
        try:
            return await asyncio.shield(self._shared_fetch(exchange, maker, kept_ms))
        except Upstream:
            if known is None:
                raise
            return known.nonce

    def _shared_fetch(self, exchange: Address, maker: Address, kept_ms: int) -> asyncio.Task[int]:
        """Return the client's fetch that is on the way if it began less than `kept_ms` ago, or else a new one."""
        now_ms, name = self._now_ms(), (client_name.get(), exchange, maker)
        fetch = self._fetching.get(name)
        if fetch is None or now_ms - fetch.at_ms >= kept_ms:
            task = asyncio.get_running_loop().create_task(self._fetch_now(exchange, maker, now_ms))
            fetch = self._fetching[name] = _Fetch(task, now_ms)
            task.add_done_callback(partial(self._end_fetch, name))
        return fetch.task

    async def _fetch_now(self, exchange: Address, maker: Address, now_ms: int) -> int:
        nonce = await self._fetch(exchange, maker)
        known = self._fetched.get((exchange, maker))
        if known is None or known.at_ms <= now_ms:
            self._fetched.put((exchange, maker), _Fetched(nonce, now_ms))
        return nonce

    def _end_fetch(self, name: tuple[str, Address, Address], task: asyncio.Task[int]) -> None:
        fetch = self._fetching.get(name)
        if fetch is not None and fetch.task is task:
            del self._fetching[name]
        if not task.cancelled():
            task.exception()  # the requests that wait have it, unless all of them gave up

    def is_known(self, exchange: Address, order: SignedOrder) -> bool:
        """Return whether the order's nonce equals one that was fetched for its maker recently."""
        known = self._fetched.get((exchange, order.maker))
        return (
            known is not None
            and known.nonce == order.nonce
            and self._now_ms() - known.at_ms < NONCE_KEPT_MS
        )

    async def check(self, exchange: Address, order: SignedOrder) -> None:
        """Refuse an order with another nonce than its maker has."""
        expected = await self.look_up(exchange, order.maker, NONCE_KEPT_MS)
        if order.nonce != expected:
            expected = await self.look_up(exchange, order.maker, NONCE_REFETCH_MS)
        if order.nonce != expected:
            raise InvalidOrderNonce(order.nonce, expected)


class AccountChain(NamedTuple):
    """What the chain says of accounts that anyone asks for; their nonces replace none that orders were checked with."""

    nonces: OrderNonces
    fetch_has_code: FetchHasCode

    @classmethod
    def of(cls, chain: "ChainView", now_ms: Callable[[], int]) -> Self:
        """Return the accounts of a chain."""
        fetch = chain.fetch_public_nonce or chain.fetch_nonce
        nonces = OrderNonces(fetch, now_ms, kept_max=PUBLIC_NONCES_KEPT_MAX)
        return cls(nonces, chain.fetch_has_code)


class BalanceRecord(msgspec.Struct, frozen=True):
    """A wallet's balance of an asset and its allowances to the exchanges, in base units.

    `balance` is the amount to trade with: `confirmed` on the chain, plus `pending` from unsettled
    trades, which may be negative. `reserved` is the part that open orders hold.
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
    wallet: Address, view: AccountReply, deployment: Deployment, exchange: Address
) -> BalanceRecord:
    """Return the ledger's view of a wallet's asset, with the allowances of the exchanges.

    Clients that sign for a contract that they contain look for its allowance: it is that of the
    exchange which accepts their signatures. `allowance`, which older clients read, is that of the
    exchange where the asset trades; for collateral that is the standard exchange.
    """
    text_by_exchange = {
        each: _allowance_text(units)
        for each, units in zip(deployment.exchanges, view.allowed_units, strict=True)
    }
    text_by_spender = text_by_exchange | {
        profile.verifying_contract: text
        for each, text in text_by_exchange.items()
        for profile in deployment.profiles_of(each)
        if profile.verifying_contract is not None
    }
    return BalanceRecord(
        balance=str(max(view.confirmed_units + view.pending_units, 0)),
        allowances={checksum_address(each): text for each, text in text_by_spender.items()},
        allowance=text_by_exchange[exchange],
        wallet=checksum_address(wallet),
        confirmed=str(view.confirmed_units),
        pending=str(view.pending_units),
        reserved=str(view.reserved_units),
        as_of_block=view.observed_block,
    )


def _allowance_text(units: int) -> str:
    """Return an allowance; one above what the ledger counts is shown as unlimited."""
    return UNLIMITED if units >= AMOUNT_UNITS_MAX else str(units)


class WalletRecord(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that an address can trade with, and the order fields that select it."""

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
    """An exchange, the domains that it accepts, and the nonces there by wallet."""

    address: str
    neg_risk: bool
    domains: list[DomainRecord]
    nonces: dict[str, str]


class AuthDomainRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A domain in which a wallet signs for an API key; without a contract it names no installation."""

    name: str
    version: str
    chain_id: int
    verifying_contract: str | None = None


class AuthRecord(msgspec.Struct, frozen=True, rename="camel"):
    """How a wallet signs for an API key: in this domain, and also without its contract if that is accepted."""

    domain: AuthDomainRecord
    accepts_unbound: bool


class AccountRecord(msgspec.Struct, frozen=True, rename="camel"):
    """Everything that a client needs to sign an order for an address.

    `exchange`, `domains` and the wallets' nonces are of the standard exchange; `exchanges` has all.
    """

    address: str
    chain_id: int
    exchange: str
    domains: list[DomainRecord]
    wallets: list[WalletRecord]
    exchanges: list[ExchangeRecord]
    auth: AuthRecord


def auth_record(rules: HeaderRules, chain_id: int) -> AuthRecord:
    """Return how a wallet signs for an API key of this installation."""
    bound = rules.bound_domain(chain_id)
    domain = bound or rules.unbound_domain(chain_id)
    contract = domain.verifying_contract
    record = AuthDomainRecord(
        name=str(domain.name),
        version=str(domain.version),
        chain_id=chain_id,
        verifying_contract=None if contract is None else checksum_address(contract),
    )
    return AuthRecord(record, rules.accepts_unbound_l1)


async def account_record(
    deployment: Deployment,
    wallets: Wallets,
    reads: AccountChain,
    rules: HeaderRules,
    address: Address,
) -> AccountRecord:
    """Return how an address can trade; nonces and deployment are fetched from the chain."""
    served = [
        (kind, name, wallet)
        for kind, name in wallets.served_types.items()
        for wallet in _wallets_of_type(wallets, address, kind)
    ]
    paying = [wallet for _, _, wallet in served]
    exchanges = [
        await _exchange_record(deployment, reads.nonces, exchange, paying)
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
                kind=name.lower(),
                address=checksum_address(wallet),
                is_deployed=wallet == address or await reads.fetch_has_code(wallet),
                signature_type=int(kind),
                maker=checksum_address(wallet),
                signer=checksum_address(wallet if kind is SignatureType.CONTRACT else address),
                nonce=standard.nonces[checksum_address(wallet)],
            )
            for kind, name, wallet in served
        ],
        exchanges=exchanges,
        auth=auth_record(rules, deployment.chain_id),
    )


def _wallets_of_type(wallets: Wallets, address: Address, kind: SignatureType) -> Sequence[Address]:
    if kind is SignatureType.CONTRACT:
        return wallets.deposit_wallets_of(address)
    return (wallets.by_signature_type(address, kind),)


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
            checksum_address(wallet): str(await nonces.look_up(exchange, wallet, NONCE_REFETCH_MS))
            for wallet in wallets
        },
    )


@dataclass(frozen=True, slots=True)
class ChainView:
    """Reads of the chain for the checks of orders, and for accounts that anyone asks for."""

    fetch_nonce: FetchNonce
    fetch_has_code: FetchHasCode
    wallets: WalletChain
    fetch_public_nonce: FetchNonce | None = None
    """The read of a nonce that anyone asks for; the one for orders if None."""
