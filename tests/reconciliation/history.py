"""Random histories on a real chain: a market and an event, trades with fees, reorganizations and restarts.

Traders act with plain transactions, and many acts revert. The indexer is started again at each look, so its only
memory is the tables.
"""

import itertools
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import sqlalchemy as sa
from tests.indexer.rig import GAS, IndexerRig, a_signed_order
from tests.reconciliation.oracle_acts import OracleActs
from tests.reconciliation.random_books import RandomBooks
from tests.rigs.events import SandboxEvent
from tests.rigs.read_apis import keep_listings, keep_rankings
from tests.rigs.rows import Rows, a_game_event_row, a_market_row, an_event_row
from tests.rigs.sandbox import Sandbox, SandboxMarket, an_indexer, catch_up

from foretell.chain.rpc import Rpc
from foretell.domain.contracts.calldata import (
    ALLOWANCE_UNITS_MAX,
    SAFE_TRANSFER_FROM,
    Approve,
    OrderFill,
    SetApprovalForAll,
    encode_match_orders,
)
from foretell.domain.contracts.neg_risk import (
    CONVERT_POSITIONS,
    MERGE_SETS,
    REDEEM_SETS,
    SPLIT_SETS,
)
from foretell.domain.contracts.sandbox_accounts import AccountRole, SandboxAccount
from foretell.domain.creation.payload import Category
from foretell.domain.creation.plan import MarketIds
from foretell.domain.evm.abi import contract_function
from foretell.domain.exchange.order import Side, SignedOrder
from foretell.domain.values.hexadecimal import Address, word_bytes
from foretell.indexer.follow import follow
from foretell.reconciliation.verify import verify_data
from foretell.store.creation.markets import EventRow
from foretell.store.database import Database

DEPTH_MAX: Final = 20
TRADERS: Final = 3
GROWTHS_MAX: Final = 20
LISTED_MS: Final = 1
"""Long before the first round of totals, which therefore has every market."""
DAYS_S: Final = (60, 86_400 // 3, 5 * 86_400)
GIVE_MANY: Final = contract_function(
    "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)"
)


Call = dict[str, str]


class EventActs:
    """What traders do with the questions of an event, each in one transaction."""

    def __init__(self, event: SandboxEvent, seed: int) -> None:
        self.event = event
        self.random = random.Random(seed)
        self._sandbox = event.sandbox
        self._salts = itertools.count(1)
        self._traders = [event.sandbox.trader(number) for number in range(TRADERS)]

    async def open(self) -> None:
        deployment = self._sandbox.deployment
        for trader in self._traders:
            for spender in (self.event.adapter, deployment.neg_risk_exchange):
                allowed = Approve(spender, ALLOWANCE_UNITS_MAX).encode()
                await self.send(trader, deployment.collateral, allowed)
                approved = SetApprovalForAll(spender, is_approved=True).encode()
                await self.send(trader, deployment.conditional_tokens, approved)
            for market in self.event.markets:
                split = SPLIT_SETS.encode(word_bytes(market.condition_id), 10_001)
                await self.send(trader, self.event.adapter, split)
        await self._sandbox.mine()

    async def act(self) -> None:
        """Do one act, which is not mined yet."""
        await self._send_call(self.call())

    def call(self) -> Call:
        """Return the transaction of a random act."""
        one, other = self.random.sample(self._traders, 2)
        market, units = self.random.choice(self.event.markets), self.random.randint(1, 3_000)
        condition = word_bytes(market.condition_id)
        tokens = self._sandbox.deployment.conditional_tokens
        adapter, pair = self.event.adapter, list(market.tokens)
        calls = [
            (adapter, SPLIT_SETS.encode(condition, units)),
            (adapter, MERGE_SETS.encode(condition, units)),
            (adapter, REDEEM_SETS.encode(condition, [units, units // 2])),
            (adapter, self._conversion(units)),
            (adapter, self._conversion(units)),
            (tokens, self._gift(one, other, pair, units)),
            (
                tokens,
                GIVE_MANY.encode(one.address, other.address, pair, [units, units // 3], b""),
            ),
        ]
        if self.random.random() < 0.4:
            return self._trade(one, other, self.random.choice(pair), units * 10)
        return a_call(one, *self.random.choice(calls))

    def _conversion(self, units: int) -> bytes:
        event_id = self.event.markets[0].neg_risk_market_id
        assert event_id is not None
        return CONVERT_POSITIONS.encode(word_bytes(event_id), self.random.randint(1, 7), units)

    def _gift(
        self, one: SandboxAccount, other: SandboxAccount, pair: list[int], units: int
    ) -> bytes:
        token = self.random.choice(pair)
        receiver = self.random.choice([other.address, one.address])
        return SAFE_TRANSFER_FROM.encode(one.address, receiver, token, units, b"")

    def _trade(self, buyer: SandboxAccount, seller: SandboxAccount, token: int, units: int) -> Call:
        cost, fee = units * 3 // 10, units // 100
        taker = self._order(buyer, Side.BUY, token, (cost, units))
        maker = self._order(seller, Side.SELL, token, (units, cost))
        fills = OrderFill(taker, cost, fee), [OrderFill(maker, units, fee // 7)]
        operator = self._sandbox.account(AccountRole.OPERATOR)
        exchange = self._sandbox.deployment.neg_risk_exchange
        return a_call(operator, exchange, encode_match_orders(*fills))

    def _order(
        self, trader: SandboxAccount, side: Side, token: int, amounts: tuple[int, int]
    ) -> SignedOrder:
        separators = self._sandbox.deployment.neg_risk_separators()
        return a_signed_order(separators, next(self._salts), trader, side, token, amounts)

    async def send(self, account: SandboxAccount, target: Address, calldata: bytes) -> None:
        await self._send_call(a_call(account, target, calldata))

    async def _send_call(self, call: Call) -> None:
        await self._sandbox.rpc.send("eth_sendTransaction", call)


def a_call(account: SandboxAccount, target: Address, calldata: bytes) -> Call:
    """Return a transaction of an account that the node signs."""
    return {"from": account.address, "to": target, "data": "0x" + calldata.hex(), "gas": GAS}


def a_listed_event(
    name: str, category: str, markets: Sequence[SandboxMarket | MarketIds]
) -> EventRow:
    """Return the catalogue's event of markets of the chain, with its main category as its only tag."""
    rows = [
        a_market_row(
            f"{name}-{number}",
            condition_id=market.condition_id,
            question_id=market.question_id,
            tokens=market.tokens,
        )
        for number, market in enumerate(markets)
    ]
    tags = (Category(category, category),)
    return an_event_row(name, *rows, main_category_slug=category, tags=tags)


def first_depth(seed: int) -> int:
    """Return how many blocks the first reorganization of a history replaces: twenty histories have each depth."""
    return 1 + seed % DEPTH_MAX


async def reorganize(sandbox: Sandbox, acts: EventActs, depth: int) -> int:
    """Have the node replace its last blocks, and return how many have another hash now.

    The first block of the new branch and some others have transactions of their own.
    """
    head = await sandbox.reader.head()
    numbers = range(head - DEPTH_MAX - 1, head + 1)
    before = await block_hashes(sandbox, numbers)
    places = [0, *(acts.random.randrange(depth) for _ in range(acts.random.randint(0, 3)))]
    await sandbox.rpc.send("anvil_reorg", depth, [[acts.call(), place] for place in places])
    after = await block_hashes(sandbox, numbers)
    assert await sandbox.reader.head() == head
    return sum(one != other for one, other in zip(before, after, strict=True))


async def block_hashes(sandbox: Sandbox, numbers: Iterable[int]) -> list[str]:
    calls = [("eth_getBlockByNumber", [hex(number), False]) for number in numbers]
    return [block["hash"] for block in await sandbox.rpc.batch(calls)]


class RandomHistory:
    """A chain that grows and reorganizes at random, and an index that follows it.

    The market is listed at once, the event when its questions have been traded; a game is listed beside them.
    """

    def __init__(
        self, sandbox: Sandbox, rig: IndexerRig, acts: EventActs, database: Database, seed: int
    ) -> None:
        self.sandbox, self.rig, self.acts, self.database = sandbox, rig, acts, database
        self.random = random.Random(seed)
        self.acts.random = random.Random(seed)
        self.unwound_blocks = 0
        self._now_s = 0
        self._first_depth = first_depth(seed)
        self.depths: list[int] = []
        """The numbers of blocks that were replaced, as the hashes show."""
        self.oracle = OracleActs(sandbox, seed)
        self.books = RandomBooks(rig.market, seed)
        self.events_to_list = [
            a_listed_event("market", "politics", [rig.market]),
            a_game_event_row("game"),
            a_listed_event("event", "weather", acts.event.markets),
        ]

    async def play(self, steps: int) -> None:
        """Act, look and reorganize in random order; end with an index that has everything."""
        kinds: list[Callable[[], Awaitable[None]]] = [self.grow] * 8
        kinds += [self.look, self.look, self.reorganize, self.rank, self.pass_time]
        await self.list_events(2)
        await self.oracle.open()
        await self.sandbox.mine(DEPTH_MAX)
        for number, act in enumerate([self.grow, *self.random.choices(kinds, k=steps)]):
            await act()
            if number == steps // 3:
                await self.list_events(1)
            if number == steps * 2 // 3:
                await self.resolve()
        await self.grow()
        await self.finish()
        await self.reorganize()
        await self.grow()
        await self.finish()

    async def confirm(self) -> None:
        """Mine so many blocks that the trades of the engine which are on the chain are confirmed, and at least one."""
        for _ in range(GROWTHS_MAX):
            await self.sandbox.mine(DEPTH_MAX)
            await self.finish()
            if self.books.confirmed:
                return
            await self.grow()
        raise AssertionError("no trade was confirmed")

    async def list_events(self, count: int) -> None:
        """List so many events of those that are not listed yet."""
        listed, self.events_to_list = self.events_to_list[:count], self.events_to_list[count:]
        async with self.database.writing() as tx:
            for event in listed:
                await Rows(tx).list_event(event, LISTED_MS)

    async def finish(self, rpc: Rpc | None = None) -> None:
        """Bring the tables to the head."""
        step = await catch_up(an_indexer(self.sandbox, self.database, rpc))
        self.unwound_blocks += step.unwound_blocks
        await self.rank()

    async def grow(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            await self.acts.act()
            await self.oracle.act()
            await self.rig.act()

    async def look(self) -> None:
        """Follow one range with an indexer that has just started."""
        size = self.random.choice([1, 3, 200])
        context = an_indexer(self.sandbox, self.database, blocks_per_range_max=size)
        self.unwound_blocks += (await follow(context)).unwound_blocks

    async def reorganize(self) -> None:
        """Have the node replace the last blocks by as many others, with other transactions in some of them."""
        await self.look()
        depth = self._first_depth if not self.depths else self.random.randint(1, DEPTH_MAX)
        self.depths.append(await reorganize(self.sandbox, self.acts, depth))

    async def pass_time(self) -> None:
        await self.sandbox.rpc.send("evm_increaseTime", self.random.choice(DAYS_S))
        await self.sandbox.mine()

    async def rank(self) -> None:
        """Bring the leaderboards and the listings to what is indexed, at a price that moves."""
        now_ms = await self.now_ms()
        async with self.database.writing() as tx:
            await self.books.change(tx, now_ms // 1000)
        await keep_rankings(self.database, now_ms, self.random.choice([9, 500]))
        await keep_listings(self.database, now_ms)

    async def now_ms(self) -> int:
        """Return the time of the exchange: the chain's, but a reorganization may take back days, and clocks do not."""
        head = await self.sandbox.reader.header("latest")
        assert head is not None
        self._now_s = max(self._now_s, head.timestamp_s)
        return self._now_s * 1000

    async def resolve(self) -> None:
        await self.rig.resolve()
        place = self.random.randrange(len(self.acts.event.markets))
        await self.acts.event.answer(place, is_yes=self.random.random() < 0.5)


async def a_short_history(
    sandbox: Sandbox, market: tuple[IndexerRig, EventActs], database: Database
) -> RandomHistory:
    """Play a short history with an answer that was proposed and disputed, and listed markets."""
    history = RandomHistory(sandbox, *market, database, 5)
    await history.list_events(3)
    await history.oracle.open()
    for _ in range(12):
        await history.oracle.act()
        await market[0].act()
    await history.finish()
    return history


async def differences(history: RandomHistory, *changes: sa.Executable) -> list[tuple[str, object]]:
    """Return the tables and keys that differ after changes."""
    async with history.database.writing() as tx:
        for change in changes:
            assert await tx.execute(change) > 0
    report = await verify_data(history.database, history.sandbox.rpc, history.sandbox.deployment)
    return [(each.table, each.key) for each in report.differences]
