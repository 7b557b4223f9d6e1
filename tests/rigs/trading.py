"""A whole trading product over real storage, and traders that use it.

The chain is simulated by `ObserveChain` commands; the clock stands still until a test moves it. No
part of the product itself is replaced.
"""

import asyncio
import contextlib
import itertools
import json
import shutil
from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import pytest
from litestar import Litestar
from tests.rigs.applications import an_app
from tests.rigs.clock import Clock
from tests.rigs.databases import PATIENT, PATIENT_S
from tests.rigs.journals import SEGMENT_BYTES
from tests.rigs.rows import Rows
from tests.rigs.values import (
    CHAIN_ID,
    EXCHANGE,
    NEG_RISK_EXCHANGE,
    a_deployment,
    a_key,
    a_placing,
    an_address,
    an_open_market,
    numbered_uuids,
    some_funds,
)

from foretell.app.embedded import EmbeddedTrading, TradingParts
from foretell.domain.contracts.wallet_state import (
    BlockMark,
    WalletChanges,
    WalletKey,
    WalletState,
)
from foretell.domain.errors.families import MalformedSignature
from foretell.domain.exchange.commands import Command
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.exchange.signing.wallet_signatures import WALLET_SIGNATURE_BYTES
from foretell.domain.values.credentials import L2Signer, l1_digest
from foretell.domain.values.eip712 import recover_signer, sign_digest
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.edge.auth import KeyRing, L1Caller
from foretell.journal.files.journal import FileJournal
from foretell.store.database import Database
from foretell.trading.accounts.accounts import ChainView
from foretell.trading.accounts.signers import SettleSigner
from foretell.trading.handlers.keys import create_key
from foretell.trading.routes.app import build_app

MASTER_KEY: Final = bytes(range(32))
BLOBS: Final = "http://blobs.test"

Headers = dict[str, str]


class KnownChain:
    """The nonces and contracts that the chain would report."""

    def __init__(self) -> None:
        self.nonce_by_maker: dict[Address, int] = {}
        self.contracts: set[Address] = set()
        self.nonces_fetched = 0
        self.signatures_fetched = 0
        self.wallets_read = 0
        self.head = BlockMark(1, Bytes32(f"0x{1:064x}"))
        self.owners_by_wallet: dict[Address, tuple[Address, ...]] = {}
        self.unknown_code: set[Address] = set()
        self.saying_no: set[Address] = set()
        self.changed: frozenset[Address] = frozenset()
        self.is_replaced = False
        self.watched: list[tuple[BlockMark, frozenset[Address]]] = []
        self.failure: Exception | None = None

    async def fetch_nonce(self, exchange: Address, maker: Address) -> int:
        assert exchange in {EXCHANGE, NEG_RISK_EXCHANGE}
        self.nonces_fetched += 1
        if self.failure is not None:
            raise self.failure
        return self.nonce_by_maker.get(maker, 0)

    async def fetch_has_code(self, address: Address) -> bool:
        return address in self.contracts

    async def read(self, wallet: Address) -> WalletState:
        self.wallets_read += 1
        if self.failure is not None:
            raise self.failure
        has_code = wallet in self.contracts
        owners = self.owners_by_wallet.get(wallet, ())
        key = WalletKey(Bytes32("0x" + "cd" * 32), None, owners, 1 if owners else 0)
        return WalletState(self.head, has_code, key, (wallet,), wallet not in self.unknown_code)

    async def accepts(
        self, state: WalletState, wallet: Address, digest: bytes, signature: bytes
    ) -> bool:
        assert (len(digest), len(signature)) == (32, WALLET_SIGNATURE_BYTES)
        self.signatures_fetched += 1
        return state.has_code and wallet not in self.saying_no

    async def changes(self, since: BlockMark, watched: Collection[Address]) -> WalletChanges:
        self.watched.append((since, frozenset(watched)))
        if self.failure is not None:
            raise self.failure
        changed = None if self.is_replaced else self.changed & frozenset(watched)
        return WalletChanges(self.head, changed)

    def mine(self, *changed: Address) -> None:
        """Add a block in which these contracts log a change."""
        number = self.head.block_number + 1
        self.head = BlockMark(number, Bytes32(f"0x{number:064x}"))
        self.changed = frozenset(changed)


class TradingRig:
    """The product, built as the composition root builds it."""

    def __init__(self, trading: EmbeddedTrading, clock: Clock, chain: KnownChain) -> None:
        self.trading = trading
        self.host = trading.host
        self.context = context = trading.context
        self.clock = clock
        self.chain = chain
        self.app: Litestar = an_app(build_app, context)
        self.client = client_of(self.app)
        self.numbers = itertools.count(1)
        self._is_closed = False

    async def submit(self, *commands: Command) -> None:
        """Submit commands to the engine."""
        for command in commands:
            at_ms = self.clock.command_time(command.at_ms)
            await self.host.engine.submit(msgspec.structs.replace(command, at_ms=at_ms))

    async def open(self, name: str = "market", *traders: str, **fields: Any) -> None:
        """Register a market and open it, with funds for its traders."""
        async with self.context.database.writing() as tx:
            await Rows(tx, numbers=self.numbers).open_named(name)
        await self.open_in_memory(name, *traders, **fields)
        await self.context.market_names.load([an_open_market(name).condition_id])

    async def open_in_memory(self, name: str, *traders: str, **fields: Any) -> None:
        """Open a market that is not registered, with funds for its traders."""
        await self.submit(an_open_market(name, **fields))
        if traders:
            await self.submit(some_funds(*traders, market=name))

    def another_market(self) -> str:
        """Return a name that no market has yet."""
        return f"market {next(self.numbers)}"

    async def rest(self, order: SignedOrder, **fields: Any) -> Bytes32:
        """Place an order without the API, for a trader that the test is not about."""
        command = a_placing(order, **fields)
        await self.submit(command)
        return command.order_id

    async def trader(self, name: str, nonce: int = 0, **fields: Any) -> "Trader":
        """Return a trader with an API key."""
        trader = Trader(self, name, **fields)
        await trader.create_key(nonce)
        return trader

    async def close_engine(self) -> None:
        """Close the engine, unless that was done."""
        if not self._is_closed:
            self._is_closed = True
            await self.host.engine.close()

    async def settle_tables(self) -> None:
        """Wait until the tables hold everything that the engine published."""
        await self.host.wait_for_tables(PATIENT_S)


class Trader:
    """A trader with a wallet and an API key that signs every request."""

    def __init__(self, rig: TradingRig, name: str, *, prefix: str = "SERVICE_") -> None:
        self.rig = rig
        self.name = name
        self.prefix = prefix
        self.address = an_address(name)
        self.key_id = self.secret = self.passphrase = ""

    def l1_headers(self, nonce: int = 0, **fields: str) -> Headers:
        timestamp = fields.get("timestamp", str(self.rig.clock.at_ms // 1000))
        digest = l1_digest(CHAIN_ID, self.address, timestamp, nonce)
        return {
            f"{self.prefix}ADDRESS": self.address,
            f"{self.prefix}SIGNATURE": "0x" + sign_digest(digest, a_key(self.name)).hex(),
            f"{self.prefix}TIMESTAMP": timestamp,
            f"{self.prefix}NONCE": str(nonce),
        }

    def l2_headers(self, method: str, path: str, body: bytes = b"") -> Headers:
        timestamp = str(self.rig.clock.at_ms // 1000)
        return {
            f"{self.prefix}ADDRESS": self.address,
            f"{self.prefix}SIGNATURE": L2Signer(self.secret).sign(timestamp, method, path, body),
            f"{self.prefix}TIMESTAMP": timestamp,
            f"{self.prefix}API_KEY": self.key_id,
            f"{self.prefix}PASSPHRASE": self.passphrase,
        }

    async def create_key(self, nonce: int = 0) -> None:
        now_s = self.rig.clock.at_ms // 1000
        caller = L1Caller(CHAIN_ID, self.address, nonce, self.prefix.lower(), now_s)
        credentials = await create_key(self.rig.context, caller)
        self.key_id = credentials.api_key
        self.secret = credentials.secret
        self.passphrase = credentials.passphrase

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> httpx.Response:
        """Send a signed request; the query is not signed."""
        raw = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        return await (client or self.rig.client).request(
            method,
            path,
            params=query,
            content=raw,
            headers=self.l2_headers(method, path, raw) | {"content-type": "application/json"},
        )

    async def get(self, path: str, **query: Any) -> Any:
        """Return the answer of a private route."""
        response = await self.send("GET", path, query=query)
        assert response.status_code == 200, response.text
        return response.json()

    def body(self, order: SignedOrder, order_type: str = "GTC", **fields: Any) -> dict[str, Any]:
        """Return the body that places an order; fields of the order may be changed after signing."""
        signed = order_json(order) | fields.pop("changed", {})
        return {"order": signed, "owner": self.key_id, "orderType": order_type, **fields}

    async def place(
        self, order: SignedOrder, order_type: str = "GTC", **fields: Any
    ) -> httpx.Response:
        """Place an order through the API."""
        return await self.send("POST", "/order", self.body(order, order_type, **fields))

    async def placed(self, order: SignedOrder, order_type: str = "GTC", **fields: Any) -> Any:
        """Place an order that must be accepted."""
        response = await self.place(order, order_type, **fields)
        assert response.status_code == 200, response.text
        return response.json()


def first_answer(again: Any) -> Any:
    """Return the first answer to an order from that to the order sent again."""
    assert again["replayed"] is True
    assert again["present"]["id"] == again["orderID"]
    return {name: value for name, value in again.items() if name not in {"replayed", "present"}}


def order_json(order: SignedOrder) -> dict[str, Any]:
    """Return an order as clients send it."""
    added = order.v2
    if added is not None:
        is_wallet = order.signature_type is SignatureType.CONTRACT
        return {
            "salt": int(order.salt),
            "maker": order.maker,
            "signer": order.maker if is_wallet else order.signer,
            "tokenId": order.token_id,
            "makerAmount": str(order.maker_amount),
            "takerAmount": str(order.taker_amount),
            "side": order.side.name,
            "expiration": str(order.expiration_s),
            "signatureType": int(order.signature_type),
            "timestamp": str(added.timestamp_ms),
            "metadata": added.metadata,
            "builder": added.builder,
            "signature": "0x" + order.signature.hex(),
        }
    return {
        "salt": int(order.salt),
        "maker": order.maker,
        "signer": order.signer,
        "taker": order.taker,
        "tokenId": order.token_id,
        "makerAmount": str(order.maker_amount),
        "takerAmount": str(order.taker_amount),
        "expiration": str(order.expiration_s),
        "nonce": str(order.nonce),
        "feeRateBps": str(order.fee_rate_bps),
        "side": order.side.name,
        "signatureType": int(order.signature_type),
        "signature": "0x" + order.signature.hex(),
    }


def client_of(app: Any) -> httpx.AsyncClient:
    """Return a client of an application in this process."""
    transport = httpx.ASGITransport(app)
    return httpx.AsyncClient(transport=transport, base_url="http://clob.test", timeout=30)


def recover_here(digest: bytes, signature: bytes, settle: SettleSigner) -> None:
    """Recover a signer in this process; starting another one for each test would take too long."""
    try:
        settle(recover_signer(digest, signature))
    except MalformedSignature as refusal:
        settle(refusal)


@contextlib.asynccontextmanager
async def a_rig(
    folder: Path, database_file: Path, clock: Clock | None = None, **fields: Any
) -> AsyncIterator[TradingRig]:
    """Run the product on a journal's folder and a database's file."""
    async with (
        Database(f"sqlite+aiosqlite:///{database_file}", PATIENT) as database,
        a_rig_on(folder, database, clock, **fields) as rig,
    ):
        yield rig


@contextlib.asynccontextmanager
async def a_rig_on(
    folder: Path,
    database: Database,
    clock: Clock | None = None,
    *,
    writes: bool = True,
    master_key: bytes = MASTER_KEY,
    **fields: Any,
) -> AsyncIterator[TradingRig]:
    """Run the product on a journal's folder and an open database.

    Without `writes` the engine's effects are not written to the tables.
    """
    clock = clock or Clock()
    chain = KnownChain()
    key_ring = KeyRing(database, master_key, [CHAIN_ID], clock.now_ms)
    fields.setdefault("deployment", a_deployment())
    parts = TradingParts(
        database=database,
        key_ring=key_ring,
        chain=ChainView(chain.fetch_nonce, chain.fetch_has_code, chain),
        recover=recover_here,
        blob_base_url=BLOBS,
        now_ms=clock.now_ms,
        elapsed_ms=clock.now_ms,
        new_uuid=numbered_uuids(),
        **fields,
    )
    trading = parts.embedded(FileJournal(folder, segment_bytes=SEGMENT_BYTES))
    await trading.start()
    loops = [asyncio.create_task(trading.host.projection.run())] if writes else []
    rig = TradingRig(trading, clock, chain)
    try:
        yield rig
    finally:
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await rig.client.aclose()
        await rig.close_engine()


@pytest.fixture
def database_file(empty_database: Path, tmp_path: Path) -> Path:
    """A database for a test that opens one itself."""
    return Path(shutil.copy(empty_database, tmp_path / "foretell.db"))


@pytest.fixture
async def rig(fresh_database: Database, tmp_path: Path) -> AsyncIterator[TradingRig]:
    """The product with one open market, and funds for alice, bob and carol."""
    async with a_rig_on(tmp_path / "journal", fresh_database) as rig:
        await rig.open("market", "alice", "bob", "carol")
        yield rig


@pytest.fixture
async def alice(rig: TradingRig) -> Trader:
    return await rig.trader("alice")


@pytest.fixture
async def bob(rig: TradingRig) -> Trader:
    return await rig.trader("bob")
