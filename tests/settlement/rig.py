"""The rig of settlement: engine, tables, indexer and settlement on a real chain, without HTTP.

`SettlementRig` is the operator's side and can be restarted over the same journal and database. A
`Trader` signs orders, for its own account or for its Safe.
"""

import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from tests.rigs.clock import Clock
from tests.rigs.databases import PATIENT
from tests.rigs.events import SandboxEvent
from tests.rigs.fault_proxy import FaultProxy
from tests.rigs.rows import a_market_row, an_event_row
from tests.rigs.sandbox import Sandbox, SandboxMarket, an_indexer, catch_up
from tests.rigs.values import NOW_MS, encode_cancel_orders

from foretell.chain.rpc import Rpc
from foretell.chain.sender import Sender, SenderOptions
from foretell.domain.contracts.calldata import (
    ALLOWANCE_UNITS_MAX,
    INCREMENT_NONCE,
    SAFE_TRANSFER_FROM,
    Approve,
    SetApprovalForAll,
    Transfer,
)
from foretell.domain.contracts.safe import SafeTx, sign_safe_tx
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID, AccountRole, SandboxAccount
from foretell.domain.evm.transaction import SentTx
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import (
    MarketRules,
    OrderType,
    Side,
    SignatureType,
    SignedOrder,
    order_terms,
)
from foretell.domain.exchange.profiles import Separators
from foretell.domain.exchange.settlement import SettlementOptions
from foretell.domain.exchange.state import Placement
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.exchange.wallets.wallet_bars import BarOptions
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, keccak256
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.projection import Projection
from foretell.journal.files.journal import FileJournal
from foretell.reconciliation.verify import verify_data
from foretell.settlement.context import SettlementContext
from foretell.settlement.landed_trades import has_index
from foretell.settlement.settle import run_once
from foretell.store.creation.markets import record_event
from foretell.store.database import Database
from foretell.store.outbox.transactions import SETTLEMENT, TxOutbox, load_txs
from foretell.store.tables import exchange_fills, settled_trades, settlement_txs
from foretell.store.trading.orders import OrderRow, load_orders
from foretell.store.trading.trades import TradeRow, load_trades_by_id

PATIENT_S: Final = 60.0
"""How long a node may take for an answer: no test waits for its end."""
UNIT: Final = 10**6
HELD: Final = 1_000 * UNIT
TICKS: Final = 100
SIZE_UNITS_MIN: Final = 100
ROUNDS_MAX: Final = 30
DATABASE_FILE: Final = "foretell.db"
SEGMENT_BYTES: Final = 1024 * 1024


@dataclass
class SettlementRig:
    """The operator's side; its folder contains the database already."""

    sandbox: Sandbox
    folder: Path
    rpc_url: str = ""
    """Settlement's node, if it is not the sandbox's own."""
    timeout_s: float = PATIENT_S
    proxy: FaultProxy | None = None
    clock: Clock = field(default_factory=Clock)
    options: SettlementOptions = field(default_factory=SettlementOptions)
    bars: BarOptions = field(default_factory=BarOptions)
    confirmations: int = 1
    has_batches: bool = False
    further_operators: tuple[SandboxAccount, ...] = ()
    salts: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        """Build every object from the files on disk, as a new process does."""
        url = f"sqlite+aiosqlite:///{self.folder / DATABASE_FILE}"
        self.database = await self.stack.enter_async_context(Database(url, PATIENT))
        self.engine = Engine(
            FileJournal(self.folder / "journal", segment_bytes=SEGMENT_BYTES), self.clock.now_ms
        )
        self.stack.push_async_callback(self.engine.close)
        self.projection = Projection(self.database)
        await self.projection.start()
        self.engine.subscribe(self.projection.on_committed)
        await self.engine.start()
        exchanges = self.sandbox.deployment.exchanges
        self.feed = ChainFeed(self.engine, self.database, exchanges, self.confirmations)
        self.indexer = an_indexer(self.sandbox, self.database)
        node = Rpc(self.rpc_url or self.sandbox.rpc_url, SANDBOX_CHAIN_ID, timeout_s=self.timeout_s)
        rpc = await self.stack.enter_async_context(node)
        accounts = (self.sandbox.account(AccountRole.OPERATOR), *self.further_operators)
        operator, *further = [
            Sender(
                rpc,
                account.private_key,
                TxOutbox(self.database, SETTLEMENT),
                SenderOptions(
                    SANDBOX_CHAIN_ID, confirmations=self.confirmations, has_simulated_price=True
                ),
                self.clock.now_ms,
            )
            for account in accounts
        ]
        settler = self.sandbox.deployment.batch_settler if self.has_batches else None
        tokens = self.sandbox.deployment.conditional_tokens
        self.context = SettlementContext(
            self.database,
            operator,
            self.clock.now_ms,
            self.options,
            settler,
            self.bars,
            tokens,
            frozenset({self.sandbox.deployment.collateral, tokens}),
            further_operators=tuple(further),
            collateral=self.sandbox.deployment.collateral,
        )

    @property
    def operator_key(self) -> bytes:
        """The key of the account that sends any transaction."""
        return self.sandbox.account(AccountRole.OPERATOR).private_key

    async def stop(self) -> None:
        await self.stack.aclose()
        self.stack = AsyncExitStack()

    async def restart(self) -> None:
        """Drop all memory and start again from the disk."""
        await self.stop()
        await self.start()

    def change(self, **options: Any) -> None:
        """Change options of settlement."""
        self.options = replace(self.options, **options)
        self.context = replace(self.context, options=self.options)

    async def open(self, title: str = "Will it rain?") -> SandboxMarket:
        """Ask a question and open its market."""
        market = await self.sandbox.ask(title)
        await self._register(title, market)
        return market

    async def open_event(self, title: str = "Most rain") -> SandboxMarket:
        """Create an event of one true outcome, and open its first market."""
        event = await SandboxEvent.ask(self.sandbox, title=title)
        ids = event.markets[0]
        market = SandboxMarket(ids.question_id, ids.condition_id, ids.tokens, is_neg_risk=True)
        await self._register(title, market)
        return market

    def exchange(self, market: SandboxMarket) -> Address:
        """Return where a market's trades settle."""
        deployment = self.sandbox.deployment
        return deployment.neg_risk_exchange if market.is_neg_risk else deployment.exchange

    def separators(self, market: SandboxMarket) -> Separators:
        """Return the signing domains of orders for a market."""
        deployment = self.sandbox.deployment
        is_event = market.is_neg_risk
        return deployment.neg_risk_separators() if is_event else deployment.separators()

    async def _register(self, title: str, market: SandboxMarket) -> None:
        row = a_market_row(
            title,
            condition_id=market.condition_id,
            question_id=market.question_id,
            tokens=market.tokens,
            exchange=self.exchange(market),
            ticks_per_one=TICKS,
            size_units_min=SIZE_UNITS_MIN,
        )
        async with self.database.writing() as tx:
            await record_event(tx, an_event_row(title, row), NOW_MS)
        # Asked before a test makes the node fail.
        await self.context.call_forms.is_packed(self.context.operator, self.exchange(market))

    async def trader(self, number: int) -> "Trader":
        """Return an account that approves the exchange for all its assets."""
        account = self.sandbox.trader(number)
        await self.sandbox.allow(account, self.sandbox.deployment.exchange)
        return Trader(self, account, account.address, SignatureType.EOA)

    async def safe_trader(self, number: int, market: SandboxMarket) -> "Trader":
        """Return the owner of a Safe that has collateral and tokens and approves the exchange."""
        sandbox, deployment = self.sandbox, self.sandbox.deployment
        account = sandbox.trader(number)
        safe = await sandbox.make_safe(account)
        trader = Trader(self, account, safe, SignatureType.SAFE)
        await sandbox.call(account, deployment.collateral, Transfer(safe, HELD).encode())
        await sandbox.split(account, market, HELD)
        for token in market.tokens:
            gift = SAFE_TRANSFER_FROM.encode(account.address, safe, token, HELD, b"")
            await sandbox.call(account, deployment.conditional_tokens, gift)
        allowance = Approve(deployment.exchange, ALLOWANCE_UNITS_MAX).encode()
        await trader.execute(deployment.collateral, allowance)
        approval = SetApprovalForAll(deployment.exchange, is_approved=True).encode()
        await trader.execute(deployment.conditional_tokens, approval)
        return trader

    async def see(self) -> None:
        """Have the indexer and then the engine read the chain."""
        await catch_up(self.indexer)
        await self.feed.run_once()
        await self.projection.catch_up()

    async def act(self) -> None:
        """Run one pass of settlement's loops."""
        await self.projection.catch_up()
        await self.begin()
        await run_once(self.context)
        await self.watch()

    async def begin(self) -> None:
        """Have the index read every block, without which settlement sends nothing."""
        if not self.context.start.is_indexed:
            await catch_up(self.indexer)
            await has_index(self.context)

    async def watch(self) -> None:
        """Watch the transactions of every account once."""
        for sender in (self.context.operator, *self.context.further_operators):
            await sender.run_once()

    async def settle(self, *, step_ms: int = 1_000) -> None:
        """Run passes, mine blocks and move the clock until no trade waits for the chain."""
        for _ in range(ROUNDS_MAX):
            await self.act()
            await self.sandbox.mine()
            self.clock.move(step_ms)
            await self.see()
            if not self.engine.state.unsettled_trades:
                await self.watch()
                return
        raise AssertionError(self.engine.state.unsettled_trades)

    async def trades(self, trade_ids: Sequence[str]) -> list[TradeRow]:
        """Return trades in the order of their ids."""
        async with self.database.reading() as tx:
            row_by_id = {row.trade.trade_id: row for row in await load_trades_by_id(tx, trade_ids)}
        return [row_by_id[trade_id] for trade_id in trade_ids]

    async def statuses(self, trade_ids: Sequence[str]) -> list[TradeStatus]:
        return [row.status for row in await self.trades(trade_ids)]

    async def settlement(self, trade_id: str) -> Any:
        """Return the row of a trade's settlement, or None."""
        query = sa.select(settled_trades).where(settled_trades.c.trade_id == trade_id)
        async with self.database.reading() as tx:
            return await tx.first(query)

    async def sent(self) -> list[SentTx]:
        """Return every transaction that settlement sent, in the order of the nonces."""
        async with self.database.reading() as tx:
            ids = [row.tx_id for row in await tx.all(sa.select(settlement_txs.c.tx_id))]
            return list(await load_txs(tx, SETTLEMENT, ids))

    async def unfinished(self) -> list[SentTx]:
        """Return the transactions whose outcome is not final."""
        return [each for each in await self.sent() if not each.is_finished]

    async def fill_count(self) -> int:
        """Return how many fills the exchange logged, those of takers included."""
        async with self.database.reading() as tx:
            return int(await tx.scalar(sa.select(sa.func.count()).select_from(exchange_fills)))

    async def check_ledger(self) -> None:
        """Assert that every account of the engine's ledger equals the chain, with nothing pending, and all tables do."""
        await self.check_accounts()
        await self.projection.catch_up()
        report = await verify_data(self.database, self.sandbox.rpc, self.sandbox.deployment)
        assert [str(each) for each in report.differences] == []

    async def check_accounts(self) -> None:
        """Assert it of the accounts alone."""
        ledger, reader = self.engine.state.ledger, self.sandbox.reader
        for wallet in {wallet for wallet, _ in ledger.accounts_held()}:
            for asset in ledger.assets(wallet):
                account = ledger.look_up(wallet, asset)
                assert (account.credit_units, account.debit_units) == (0, 0)
                assert account.confirmed_units == await self.chain_units(wallet, asset)
        held = await reader.collateral_units(self.sandbox.deployment.exchange)
        assert held == 0

    async def chain_units(self, wallet: Address, asset: AssetId) -> int:
        reader = self.sandbox.reader
        if asset == COLLATERAL:
            return await reader.collateral_units(wallet)
        return (await reader.token_units([(wallet, asset)]))[0]

    async def order_row(self, order_id: str) -> OrderRow:
        """Return an order's row."""
        async with self.database.reading() as tx:
            return (await load_orders(tx, [order_id]))[order_id]

    async def automine(self, *, is_on: bool) -> None:
        """Have the node mine a block for each transaction, or none by itself."""
        await self.sandbox.rpc.send("evm_setAutomine", is_on)


@dataclass
class Trader:
    """An account that signs orders."""

    rig: SettlementRig
    account: SandboxAccount
    wallet: Address
    signature_type: SignatureType

    async def execute(self, target: Address, calldata: bytes) -> None:
        """Have the trader's wallet call a contract, at the owner's cost."""
        sandbox = self.rig.sandbox
        if self.signature_type is SignatureType.EOA:
            await sandbox.call(self.account, target, calldata)
            return
        state = await sandbox.reader.safe(self.wallet)
        assert state is not None
        safe_tx = SafeTx(self.wallet, target, calldata, state.nonce)
        signature = sign_safe_tx(safe_tx.digest(SANDBOX_CHAIN_ID), self.account.private_key)
        await sandbox.call(self.account, self.wallet, safe_tx.encode(signature))

    async def cancel_on_chain(self, order: SignedOrder) -> None:
        """Cancel an order of the trader's own account at the exchange."""
        exchange = self.rig.sandbox.deployment.exchange
        await self.rig.sandbox.call(self.account, exchange, encode_cancel_orders([order]))

    async def raise_nonce(self) -> None:
        """Cancel, at the exchange, all orders that the trader's wallet has signed."""
        await self.execute(self.rig.sandbox.deployment.exchange, INCREMENT_NONCE.encode())

    async def overtake(self, target: Address, calldata: bytes) -> None:
        """Send a transaction that comes first in its block."""
        call = {
            "from": self.account.address,
            "to": target,
            "data": "0x" + calldata.hex(),
            "gas": hex(200_000),
            "maxFeePerGas": hex(10**12),
            "maxPriorityFeePerGas": hex(10**11),
        }
        await self.rig.sandbox.rpc.send("eth_sendTransaction", call)

    def order(
        self, market: SandboxMarket, side: Side, price_ticks: int, size: int, **fields: Any
    ) -> SignedOrder:
        """Return a signed order for an outcome, Yes by default; the size is in base units."""
        is_yes = fields.pop("is_yes", True)
        cost = -(-size * price_ticks // TICKS)
        is_buy = side is Side.BUY
        order = SignedOrder(
            salt=str(next(self.rig.salts)),
            maker=self.wallet,
            signer=self.account.address,
            taker=ZERO_ADDRESS,
            token_id=str(market.tokens.yes if is_yes else market.tokens.no),
            maker_amount=cost if is_buy else size,
            taker_amount=size if is_buy else cost,
            expiration_s=0,
            nonce=0,
            fee_rate_bps=0,
            side=side,
            signature_type=self.signature_type,
            profile=0,
            signature=b"",
        )
        order = msgspec.structs.replace(order, **fields)
        digest = self.rig.separators(market).digest(order, order.profile)
        signature = sign_digest(digest, self.account.private_key)
        return msgspec.structs.replace(order, signature=signature)

    async def place(
        self,
        market: SandboxMarket,
        order: SignedOrder,
        order_type: OrderType = OrderType.GTC,
    ) -> Placement:
        """Have the engine place an order."""
        placement = await self.rig.engine.submit(self.placing(market, order, order_type))
        assert isinstance(placement, Placement)
        return placement

    def placing(
        self,
        market: SandboxMarket,
        order: SignedOrder,
        order_type: OrderType = OrderType.GTC,
    ) -> PlaceOrder:
        """Return the command that places an order now."""
        order_id = self.rig.separators(market).order_id(order)
        rules = MarketRules(TICKS, SIZE_UNITS_MIN, order.fee_rate_bps)
        return PlaceOrder(
            at_ms=self.rig.engine.clock_ms(),
            order_id=order_id,
            order=order,
            order_type=order_type,
            is_post_only=False,
            owner=f"key of {self.account.address}",
            condition_id=market.condition_id,
            is_yes=order.token_id == str(market.tokens.yes),
            terms=order_terms(order, order_type, rules, order_id),
        )

    async def buy(
        self, market: SandboxMarket, price_ticks: int, size: int, **fields: Any
    ) -> Placement:
        return await self.place(market, self.order(market, Side.BUY, price_ticks, size, **fields))

    async def sell(
        self, market: SandboxMarket, price_ticks: int, size: int, **fields: Any
    ) -> Placement:
        return await self.place(market, self.order(market, Side.SELL, price_ticks, size, **fields))


def reverting(word: str) -> str:
    """Return the code of a contract that reverts every call with an error of this name."""
    selector = keccak256(f"{word}()".encode())[:4]
    return f"0x63{selector.hex()}60e01b5f5260045ffd"
