"""Events of one true outcome, indexed from the real chain."""

import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import pytest
import sqlalchemy as sa
from tests.indexer.rig import check_balances, dump, wipe
from tests.rigs.events import SandboxEvent
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up

from foretell.domain.contracts.calldata import (
    SAFE_TRANSFER_FROM,
    MergePositions,
    OrderFill,
    encode_match_orders,
)
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.neg_risk import UNWRAP
from foretell.domain.contracts.sandbox_accounts import AccountRole, SandboxAccount
from foretell.domain.errors.chain import ExecutionReverted
from foretell.domain.exchange.order import Side, SignatureType, SignedOrder
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import ZERO_ADDRESS
from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind
from foretell.store.tables import activities, exchange_fills, locked_collateral, positions

pytestmark = pytest.mark.anyio

SETS: Final = 1_000
ALL: Final = 0b111


@pytest.fixture
async def event(fresh_sandbox: Sandbox) -> SandboxEvent:
    """An event whose first two traders hold complete sets of every question."""
    event = await SandboxEvent.ask(fresh_sandbox)
    for trader in (fresh_sandbox.trader(0), fresh_sandbox.trader(1)):
        for spender in (event.adapter, fresh_sandbox.deployment.neg_risk_exchange):
            await fresh_sandbox.allow(trader, spender)
        for place in range(len(event.markets)):
            await event.split(trader, place, SETS)
    return event


async def indexed(event: SandboxEvent, database: Database) -> None:
    """Index the chain, and assert that the tables equal it."""
    step = await catch_up(an_indexer(event.sandbox, database))
    assert step.ignored == {}
    await check_balances(event.sandbox, database)


async def acts_of(database: Database, trader: SandboxAccount) -> list[tuple[object, ...]]:
    async with database.reading() as tx:
        rows = await tx.all(
            sa.select(activities)
            .where(activities.c.wallet == trader.address)
            .order_by(activities.c.block_number, activities.c.log_index)
        )
    return [(row.kind, row.condition_id, row.size_units, row.cost_units) for row in rows]


async def position_of(
    database: Database, trader: SandboxAccount, token: int
) -> tuple[int, int, int]:
    """Return the size, the cost and the realized gain."""
    async with database.reading() as tx:
        row = await tx.first(
            sa.select(positions).where(
                positions.c.wallet == trader.address, positions.c.token_id == str(token)
            )
        )
    assert row is not None
    return row.size_units, row.cost_units, row.realized_units


async def locked(database: Database) -> int:
    async with database.reading() as tx:
        return int(await tx.scalar(sa.select(sa.func.sum(locked_collateral.c.units))))


async def backing(event: SandboxEvent) -> int:
    """Return the collateral under all positions of events."""
    wrapped = event.sandbox.deployment.address(ContractName.WRAPPED_COLLATERAL)
    return await event.sandbox.reader.collateral_units(wrapped)


def an_order(
    event: SandboxEvent, trader: SandboxAccount, side: Side, token: int, amounts: tuple[int, int]
) -> SignedOrder:
    order = SignedOrder(
        salt=str(random.Random(f"{trader.address}{side}{token}{amounts}").getrandbits(48)),
        maker=trader.address,
        signer=trader.address,
        taker=ZERO_ADDRESS,
        token_id=str(token),
        maker_amount=amounts[0],
        taker_amount=amounts[1],
        expiration_s=0,
        nonce=0,
        fee_rate_bps=0,
        side=side,
        signature_type=SignatureType.EOA,
        profile=0,
        signature=b"",
    )
    digest = event.sandbox.deployment.neg_risk_separators().digest(order, order.profile)
    return msgspec.structs.replace(order, signature=sign_digest(digest, trader.private_key))


async def match(event: SandboxEvent, taker: SignedOrder, maker: SignedOrder) -> None:
    sandbox = event.sandbox
    fills = OrderFill(taker, taker.maker_amount), [OrderFill(maker, maker.maker_amount)]
    operator = sandbox.account(AccountRole.OPERATOR)
    exchange = sandbox.deployment.neg_risk_exchange
    await sandbox.call(operator, exchange, encode_match_orders(*fills))


async def test_a_split_and_a_merge_through_the_adapter_are_acts_of_the_wallet(
    event: SandboxEvent, database: Database
) -> None:
    trader = event.sandbox.trader(0)
    await event.merge(trader, 1, 300)

    await indexed(event, database)

    conditions = [market.condition_id for market in event.markets]
    splits = [(ActivityKind.SPLIT, condition, SETS, SETS) for condition in conditions]
    merged = (ActivityKind.MERGE, conditions[1], 300, 300)
    assert await acts_of(database, trader) == [*splits, merged]
    assert await position_of(database, trader, event.markets[1].tokens.yes) == (700, 350, 0)
    assert await locked(database) == 6 * SETS - 300 == await backing(event)


async def test_a_conversion_takes_no_s_and_gives_the_other_yes(
    event: SandboxEvent, database: Database
) -> None:
    trader = event.sandbox.trader(0)
    first, second, third = event.markets
    before = await event.sandbox.reader.collateral_units(trader.address)
    await event.convert(trader, 0b011, 600)
    paid = await event.sandbox.reader.collateral_units(trader.address) - before

    await indexed(event, database)

    assert paid == 600
    acts = await acts_of(database, trader)
    assert acts[-1] == (ActivityKind.CONVERSION, first.condition_id, 1200, 600)
    assert await position_of(database, trader, first.tokens.no) == (400, 200, 100)
    assert await position_of(database, trader, second.tokens.no) == (400, 200, 100)
    assert await position_of(database, trader, third.tokens.yes) == (1600, 700, 0)
    assert await position_of(database, trader, third.tokens.no) == (1000, 500, 0)
    assert await locked(database) + 600 == await backing(event)


async def test_a_wallet_converts_all_its_no_s_into_collateral(
    event: SandboxEvent, database: Database
) -> None:
    trader = event.sandbox.trader(0)
    await event.convert(trader, ALL, SETS)

    await indexed(event, database)

    acts = await acts_of(database, trader)
    assert acts[-1] == (ActivityKind.CONVERSION, event.markets[0].condition_id, 3000, 2000)
    sizes = [await position_of(database, trader, market.tokens.no) for market in event.markets]
    assert sizes == [(0, 0, 167), (0, 0, 167), (0, 0, 166)]


async def test_fills_of_the_neg_risk_exchange_are_trades(
    event: SandboxEvent, database: Database
) -> None:
    sandbox, token = event.sandbox, event.markets[2].tokens
    ann, bob = sandbox.trader(0), sandbox.trader(1)
    buy = an_order(event, ann, Side.BUY, token.yes, (40, 100))
    sell = an_order(event, bob, Side.SELL, token.yes, (100, 40))
    await match(event, buy, sell)
    mint_yes = an_order(event, ann, Side.BUY, token.yes, (70, 100))
    mint_no = an_order(event, bob, Side.BUY, token.no, (30, 100))
    await match(event, mint_yes, mint_no)
    unmint_yes = an_order(event, ann, Side.SELL, token.yes, (200, 100))
    unmint_no = an_order(event, bob, Side.SELL, token.no, (200, 100))
    await match(event, unmint_yes, unmint_no)

    await indexed(event, database)

    async with database.reading() as tx:
        fills = await tx.all(sa.select(exchange_fills))
    assert len(fills) == 6
    trades = [act for act in await acts_of(database, ann) if act[0] == ActivityKind.TRADE]
    assert [(size, cost) for _, _, size, cost in trades] == [(100, 40), (100, 70), (200, 100)]
    assert await locked(database) == 6 * SETS - 100 == await backing(event)


@pytest.mark.parametrize("winner", [0, 2])
async def test_redeeming_everything_leaves_nothing_locked(
    event: SandboxEvent, database: Database, winner: int
) -> None:
    sandbox, reader = event.sandbox, event.sandbox.reader
    await event.convert(sandbox.trader(0), 0b101, 250)
    await event.convert(sandbox.trader(1), 0b010, 400)
    for place in range(3):
        await event.answer(place, is_yes=place == winner)
    await indexed(event, database)
    assert await locked(database) == await backing(event) > 0

    for trader in (sandbox.trader(0), sandbox.trader(1)):
        for place, market in enumerate(event.markets):
            yes, no = await reader.token_units(
                [(trader.address, str(token)) for token in market.tokens]
            )
            await event.redeem(trader, place, yes, no)
    await indexed(event, database)

    assert (await locked(database), await backing(event)) == (0, 0)
    acts = await acts_of(database, sandbox.trader(0))
    assert sum(act[0] == ActivityKind.REDEEM for act in acts) == 3


async def test_merging_at_conditional_tokens_directly_returns_wrapped_collateral(
    event: SandboxEvent, database: Database
) -> None:
    sandbox, market = event.sandbox, event.markets[0]
    wrapped = sandbox.deployment.address(ContractName.WRAPPED_COLLATERAL)
    trader = sandbox.trader(0)
    sets = MergePositions(wrapped, market.condition_id, 100)
    await sandbox.call(trader, sandbox.deployment.conditional_tokens, sets.encode())

    await indexed(event, database)

    acts = await acts_of(database, trader)
    assert acts[-1] == (ActivityKind.MERGE, market.condition_id, 100, 100)
    assert await locked(database) == 6 * SETS - 100


async def test_an_emptied_index_is_rebuilt_identically(
    event: SandboxEvent, database: Database
) -> None:
    await event.convert(event.sandbox.trader(0), 0b001, 77)
    await event.answer(0, is_yes=True)
    context = an_indexer(event.sandbox, database, blocks_per_range_max=7)
    await catch_up(context)
    before = await dump(database)

    await wipe(database)
    await catch_up(an_indexer(event.sandbox, database))

    assert await dump(database) == before


async def test_a_reorg_reverses_a_conversion(event: SandboxEvent, database: Database) -> None:
    await indexed(event, database)
    before = await dump(database)
    snapshot = await event.sandbox.rpc.send("evm_snapshot")
    await event.convert(event.sandbox.trader(0), 0b110, 123)
    await event.answer(1, is_yes=True)
    await indexed(event, database)
    assert await dump(database) != before

    await event.sandbox.rpc.send("evm_revert", snapshot)
    await indexed(event, database)

    assert await dump(database) == before


class EventLife:
    """Two traders of an event that act at random; an act that the contracts refuse reverts."""

    def __init__(self, event: SandboxEvent, seed: int) -> None:
        self._event = event
        self._sandbox = event.sandbox
        self._random = random.Random(seed)
        self._traders = [event.sandbox.trader(0), event.sandbox.trader(1)]
        self.converted_units = 0

    async def act(self) -> None:
        """Do one random act."""
        one, other = self._random.sample(self._traders, 2)
        place, units = self._random.randrange(3), self._random.randint(1, 40) * 10
        acts: list[Callable[[], Awaitable[object]]] = [
            lambda: self._event.split(one, place, units),
            lambda: self._event.merge(one, place, units),
            lambda: self._convert(one, self._random.randint(1, ALL), units),
            lambda: self._convert(one, self._random.randint(1, ALL), units),
            lambda: self._give(one, other, place, units),
            lambda: self._unwrapped_merge(one, place, units),
            *(lambda: self._match(one, other, place, units) for _ in range(3)),
        ]
        with contextlib.suppress(ExecutionReverted):
            await self._random.choice(acts)()

    async def _convert(self, trader: SandboxAccount, index_set: int, units: int) -> None:
        await self._event.convert(trader, index_set, units)
        self.converted_units += units

    async def _give(
        self, giver: SandboxAccount, taker: SandboxAccount, place: int, units: int
    ) -> None:
        token = self._random.choice(self._event.markets[place].tokens)
        calldata = SAFE_TRANSFER_FROM.encode(giver.address, taker.address, token, units, b"")
        await self._sandbox.call(giver, self._sandbox.deployment.conditional_tokens, calldata)

    async def _unwrapped_merge(self, trader: SandboxAccount, place: int, units: int) -> None:
        deployment = self._sandbox.deployment
        wrapped = deployment.address(ContractName.WRAPPED_COLLATERAL)
        sets = MergePositions(wrapped, self._event.markets[place].condition_id, units)
        await self._sandbox.call(trader, deployment.conditional_tokens, sets.encode())
        await self._sandbox.call(trader, wrapped, UNWRAP.encode(trader.address, units))

    async def _match(
        self, one: SandboxAccount, other: SandboxAccount, place: int, units: int
    ) -> None:
        """A transfer, a mint or a merge, at 0.60 of Yes."""
        yes, no = self._event.markets[place].tokens
        cost = units * 6 // 10
        taker_side, maker_side, token, maker_cost = self._random.choice(
            [
                (Side.BUY, Side.SELL, yes, cost),
                (Side.BUY, Side.BUY, no, units - cost),
                (Side.SELL, Side.SELL, no, units - cost),
            ]
        )
        taker = an_order(self._event, one, taker_side, yes, _amounts(taker_side, units, cost))
        maker = an_order(
            self._event, other, maker_side, token, _amounts(maker_side, units, maker_cost)
        )
        await match(self._event, taker, maker)


def _amounts(side: Side, units: int, cost: int) -> tuple[int, int]:
    return (cost, units) if side is Side.BUY else (units, cost)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_after_random_acts_on_an_event_the_tables_equal_the_chain(
    event: SandboxEvent, database: Database, seed: int
) -> None:
    life = EventLife(event, seed)
    for _ in range(3):
        for _ in range(12):
            await life.act()
        await indexed(event, database)
        assert await locked(database) + life.converted_units == await backing(event)
    assert life.converted_units > 0

    for place in range(3):
        await event.answer(place, is_yes=place == seed % 3)
    await indexed(event, database)

    assert await locked(database) == await backing(event)
