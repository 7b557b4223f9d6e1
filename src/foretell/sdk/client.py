"""One signer at one installation: every API, the chain, and the wallet that it trades with.

```python
async with Foretell.connect(Urls.at("http://127.0.0.1:8000"), KeySigner.from_hex(key)) as foretell:
    await foretell.trader.buy(token_id, price="0.40", size="10")
```
"""

import contextlib
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from foretell.domain.contracts.safe import InnerCall
from foretell.domain.errors.command import NoNode, NoSuchWallet, NotRunning
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.exchange.order import OrderType, Side
from foretell.domain.values.credentials import L1_DOMAIN_NAME
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, Bytes32, parse_address
from foretell.sdk import wallet_calls
from foretell.sdk.amounts import parse_base_units
from foretell.sdk.chain import ChainAccount
from foretell.sdk.contracts import Contracts
from foretell.sdk.deposit_wallet import DepositWalletClient
from foretell.sdk.http import UNREACHABLE_ATTEMPTS, HttpClient
from foretell.sdk.json_rpc import JsonRpc
from foretell.sdk.market_creation import MarketCreation, Report
from foretell.sdk.oracles.optimistic import OptimisticResolver
from foretell.sdk.oracles.resolution import MarketResolver, Whitelist
from foretell.sdk.orders import OrderDraft
from foretell.sdk.portfolio import Discovery, Portfolio, Row
from foretell.sdk.proxy_wallet import ProxyWalletClient
from foretell.sdk.relayer import RelayerClient
from foretell.sdk.signing.signers import KeySigner, RemoteSigner, Signer
from foretell.sdk.streaming.account_stream import watch_account
from foretell.sdk.streaming.book import Message
from foretell.sdk.streaming.streams import BookChange, watch_books
from foretell.sdk.trader import MarketData, Trader
from foretell.sdk.wallet_calls import MarketCondition

__all__ = [
    "Foretell",
    "KeySigner",
    "OrderDraft",
    "OrderType",
    "PublicApis",
    "RemoteSigner",
    "Side",
    "Urls",
]

SAFE: Final = "safe"
"""The kind of the wallet that `GET /auth/account` calls so."""
CLAIMS_PER_TRANSACTION: Final = 16
"""As many calls as a deposit wallet or a proxy wallet makes in one."""
WORKER_VARIABLE: Final = "CREATE_MARKET_URL"
"""Names another market-creation worker than the installation's own."""


class Urls(msgspec.Struct, frozen=True, rename="camel"):
    """The addresses of an installation, as `ready.json` has them too."""

    clob: str
    worker: str
    relayer: str
    data: str
    discovery: str
    ws: str
    rpc: str = ""
    l1_domain: str = L1_DOMAIN_NAME

    @classmethod
    def at(cls, base_url: str, rpc: str = "", environment: Mapping[str, str] = os.environ) -> Self:
        """Return the addresses of an installation that serves all its APIs under one."""
        base = base_url.rstrip("/")
        return cls(
            clob=f"{base}/clob",
            worker=environment.get(WORKER_VARIABLE) or f"{base}/create-market",
            relayer=f"{base}/relayer",
            data=f"{base}/data",
            discovery=f"{base}/discovery",
            ws=f"{base}/clob/ws".replace("http", "ws", 1),
            rpc=rpc,
        )

    @classmethod
    def from_ready(cls, folder: Path, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the addresses of the sandbox that runs on a data folder."""
        try:
            found = msgspec.json.decode((folder / "ready.json").read_bytes(), type=cls)
        except (FileNotFoundError, msgspec.MsgspecError) as error:
            raise NotRunning(str(folder)) from error
        worker = environment.get(WORKER_VARIABLE) or found.worker
        return msgspec.structs.replace(found, worker=worker)


def now_s() -> int:
    """Return the time in seconds."""
    return int(time.time())  # noqa: TID251 - a client's requests carry the time of signing


@dataclass(kw_only=True)
class PublicApis:
    """The APIs that need no key."""

    urls: Urls
    worker: HttpClient
    markets: MarketData
    discovery: Discovery
    data: HttpClient

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, urls: Urls) -> AsyncIterator["PublicApis"]:
        """Give the public APIs; their connections end with the block."""
        async with contextlib.AsyncExitStack() as stack:
            yield await open_apis(urls, stack)

    def watch_books(self, *token_ids: str) -> AsyncGenerator[BookChange]:
        """Yield a book after each of its changes, over any number of lost connections."""
        return watch_books(self.urls.ws, token_ids)

    def portfolio(self, wallet: Address) -> Portfolio:
        """Return the positions and the history of any wallet."""
        return Portfolio(self.data, wallet)


async def open_apis(urls: Urls, stack: contextlib.AsyncExitStack) -> PublicApis:
    """Return clients of the public APIs, which the stack closes."""

    async def client(url: str) -> HttpClient:
        http = HttpClient(url, unreachable_attempts=UNREACHABLE_ATTEMPTS)
        return await stack.enter_async_context(http)

    return PublicApis(
        urls=urls,
        worker=await client(urls.worker),
        markets=MarketData(await client(urls.clob)),
        discovery=Discovery(await client(urls.discovery)),
        data=await client(urls.data),
    )


class Foretell:
    """A signer at an installation, with its own address or a contract of its own as the wallet."""

    def __init__(
        self,
        apis: PublicApis,
        trader: Trader,
        relayer: HttpClient,
        contracts: Contracts,
        account: ChainAccount | None,
    ) -> None:
        self.apis = apis
        self.trader = trader
        self.contracts = contracts
        self._account = account
        safe = Address(trader.account.wallet("safe").address.lower())
        self.relayer = RelayerClient(relayer, trader, contracts, safe)
        self.deposit_wallet = _deposit_wallet(self.relayer, trader, contracts)
        self.proxy_wallet = _proxy_wallet(self.relayer, trader, contracts)

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(
        cls, urls: Urls, signer: Signer, *, wallet: str = "eoa"
    ) -> AsyncIterator["Foretell"]:
        """Give a signer's client; its connections end with the block.

        `wallet` is `eoa`, `safe`, `proxy wallet` or `deposit wallet`: the relayer sends the transactions of
        all but the first.
        The API key is created or derived by a signature, and is nowhere on disk.
        """
        async with contextlib.AsyncExitStack() as stack:
            apis = await open_apis(urls, stack)
            http = apis.markets.http
            trader = await Trader.open(http, signer, now_s, wallet=wallet, l1_domain=urls.l1_domain)
            relayer = HttpClient(urls.relayer, unreachable_attempts=UNREACHABLE_ATTEMPTS)
            account = None
            if urls.rpc:
                rpc = await stack.enter_async_context(JsonRpc(urls.rpc))
                account = ChainAccount(rpc, signer, trader.chain_id)
            yield cls(
                apis,
                trader,
                await stack.enter_async_context(relayer),
                await Contracts.fetch(apis.worker),
                account,
            )

    @property
    def has_chain(self) -> bool:
        """Whether the client has a node, so that the signer can send transactions."""
        return self._account is not None

    @property
    def chain(self) -> ChainAccount:
        """The signer's own account on the chain; a client without a node has none."""
        if self._account is None:
            raise NoNode
        return self._account

    @property
    def portfolio(self) -> Portfolio:
        """The positions and the history of the wallet."""
        return self.apis.portfolio(self.trader.maker)

    @property
    def is_safe(self) -> bool:
        """Whether the wallet is a Safe."""
        return self.trader.wallet.kind == SAFE

    def watch_account(self) -> AsyncGenerator[Message]:
        """Yield one's own orders and trades as they change; see `account_stream`."""
        return watch_account(self.trader, self.apis.urls.ws)

    async def execute(self, calls: Sequence[InnerCall]) -> str:
        """Make calls from the wallet, and return the hash of the last transaction.

        A Safe makes them all or none, a proxy wallet or a deposit wallet up to 16 of them; an address one
        after the other.
        """
        if self.is_safe:
            return await self.relayer.execute(calls)
        if self.deposit_wallet is not None:
            return await self.deposit_wallet.execute(calls)
        if self.proxy_wallet is not None:
            return await self.proxy_wallet.execute(calls)
        own = [ContractCall(each.to, each.calldata, value_wei=each.value_wei) for each in calls]
        return (await self.chain.call_all(own))[-1].tx_hash

    async def deploy_wallet(self) -> Address:
        """Deploy the wallet if it is a contract that does not exist, and make the approvals of trading.

        A proxy wallet is made by its first calls, which are these approvals.
        """
        if self.is_safe:
            await self.relayer.create_safe()
        elif self.deposit_wallet is not None:
            await self.deposit_wallet.create()
        await self.execute(wallet_calls.approvals(self.contracts))
        return self.trader.maker

    async def split(self, condition: MarketCondition, size: str) -> str:
        """Split collateral into complete sets."""
        units = parse_base_units(size, "size")
        return await self.execute([wallet_calls.split(self.contracts, condition, units)])

    async def merge(self, condition: MarketCondition, size: str) -> str:
        """Merge complete sets into collateral."""
        units = parse_base_units(size, "size")
        return await self.execute([wallet_calls.merge(self.contracts, condition, units)])

    async def convert(self, event_id: Bytes32, question_indexes: Sequence[int], size: str) -> str:
        """Convert No's of an event into Yes's of its other markets, and collateral."""
        units = parse_base_units(size, "size")
        call = wallet_calls.convert(self.contracts, event_id, question_indexes, units)
        return await self.execute([call])

    async def redeem(self, condition: MarketCondition) -> str:
        """Redeem everything that the wallet holds of a resolved market."""
        return await self.execute([await self._redemption(condition)])

    async def redeem_all(self) -> list[MarketCondition]:
        """Redeem every resolved position of the wallet, and return its markets."""
        rows = await self.portfolio.positions(redeemable="true")
        flags = {row["conditionId"]: bool(row.get("negativeRisk")) for row in rows}
        conditions = [MarketCondition(Bytes32(key), flag) for key, flag in sorted(flags.items())]
        for condition in conditions:
            await self.execute([await self._redemption(condition)])
        return conditions

    async def claim_tokens(self, receiver: Address | None = None) -> list[Row]:
        """Claim all tokens that exchanges keep for the wallet, and return their rows of `GET /owed`.

        The wallet refused them once: if it still does, name another receiver.
        """
        rows, to = await self.portfolio.owed(), receiver or self.trader.maker
        for start in range(0, len(rows), CLAIMS_PER_TRANSACTION):
            part = rows[start : start + CLAIMS_PER_TRANSACTION]
            await self.execute(
                [
                    wallet_calls.claim(parse_address(row["exchange"]), row["asset"], to)
                    for row in part
                ]
            )
        return rows

    async def _redemption(self, condition: MarketCondition) -> InnerCall:
        market = await self.apis.discovery.market(condition.condition_id)
        rows = await self.portfolio.positions(market=condition.condition_id)
        held = {str(row["asset"]): parse_base_units(_text(row["size"]), "size") for row in rows}
        units = [held.get(token, 0) for token in market.token_ids]
        return wallet_calls.redeem(self.contracts, condition, units)

    def creation(self, folder: Path, report: Report = lambda _: None) -> MarketCreation:
        """Return the creation of markets from the notes in a folder."""
        return MarketCreation(self.apis.worker, self.chain, folder, report)

    def optimistic(self) -> OptimisticResolver:
        """Return the account that proposes and disputes answers with a bond."""
        return OptimisticResolver(self.chain, self.contracts)

    def resolver(self) -> MarketResolver:
        """Return the whitelisted proposer that this signer is."""
        return MarketResolver(self.chain, self.contracts)

    def whitelist(self) -> Whitelist:
        """Return the whitelist of this signer as a creator."""
        return Whitelist(self.chain, self.contracts)


def _deposit_wallet(
    relayer: RelayerClient, trader: Trader, contracts: Contracts
) -> DepositWalletClient | None:
    """Return the client of the trader's wallet if it is a deposit wallet; the factories are in its order."""
    if not trader.wallet.is_contract:
        return None
    own = [each.address for each in trader.account.wallets if each.is_contract]
    place = own.index(trader.wallet.address)
    if place >= len(contracts.deposit_wallet_factories):
        raise NoSuchWallet(trader.wallet.kind, ["eoa", SAFE])
    factory = contracts.deposit_wallet_factories[place]
    return DepositWalletClient(relayer, factory, trader.maker, trader.markets.server_time)


def _proxy_wallet(
    relayer: RelayerClient, trader: Trader, contracts: Contracts
) -> ProxyWalletClient | None:
    """Return the client of the trader's wallet if it is a proxy wallet."""
    if not trader.wallet.is_proxy_wallet:
        return None
    if ZERO_ADDRESS in {contracts.proxy_wallet_factory, contracts.relay_hub}:
        raise NoSuchWallet(trader.wallet.kind, ["eoa", SAFE])
    return ProxyWalletClient(
        relayer, contracts.proxy_wallet_factory, contracts.relay_hub, trader.maker
    )


def _text(number: Any) -> str:
    """Return a number of JSON as decimal text, without an exponent."""
    return f"{number:.6f}".rstrip("0").rstrip(".") if isinstance(number, float) else str(number)
