from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.rigs.orders.version_2 import a_v2_buy
from tests.rigs.trading import TradingRig, a_rig
from tests.rigs.values import (
    EXCHANGE,
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_word,
    an_address,
    an_observation,
)

from foretell.domain.errors.exchange import (
    EngineBusy,
    InsufficientBalance,
    MarketHalted,
    OrderCanceledOnChain,
)
from foretell.domain.errors.order import InvalidOrderNonce, OrderStopped
from foretell.domain.exchange.apply import Result
from foretell.domain.exchange.commands import (
    AllowanceSeen,
    BalanceSeen,
    Command,
    DelayMarket,
    ObserveChain,
    TradeSeen,
    decode_command,
    encode_command,
)
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.observe_chain import OBSERVED_PER_COMMAND_MAX
from foretell.domain.exchange.signing.stops import StopKind
from foretell.domain.exchange.snapshot import decode_state, encode_state
from foretell.domain.exchange.trade import TradeStatus, trade_id_of
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Bytes32
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.journal.files.reader import read_entries
from foretell.journal.framing import PAYLOAD_BYTES_MAX
from foretell.store.creation.halted_markets import (
    RegisteredMarket,
    record_halt,
    record_resumption,
)
from foretell.store.index.balances import Allowance, Balance, record_allowances, record_balances
from foretell.store.index.blocks import Block, record_blocks
from foretell.store.index.cancellations import (
    CanceledOrder,
    MakerStop,
    RaisedNonce,
    record_canceled_orders,
    record_raised_nonces,
    record_stops,
)
from foretell.store.index.unwind import unwind

pytestmark = pytest.mark.anyio

NAMES = [f"trader {number}" for number in range(7)]
ENTRIES_MAX = 3
PARTS = 5
"""The parts of an observation of each trader's balance and allowance, three in a part."""


@pytest.fixture
async def rig(database_file: Path, tmp_path: Path) -> AsyncIterator[TradingRig]:
    """The product with a market, and traders that the engine does not know yet."""
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await rig.open("market")
        await index(rig, 1, 100 * TOKEN)
        yield rig


def block_hash(number: int) -> Bytes32:
    return a_word(f"block {number}")


async def index(rig: TradingRig, number: int, units: int) -> None:
    """Store a block after which every trader holds and allows this many units."""
    traders = [an_address(name) for name in NAMES]
    held = [Balance(trader, COLLATERAL, units, number) for trader in traders]
    allowed = [
        Allowance(trader, EXCHANGE, is_collateral=True, units=units, block_number=number)
        for trader in traders
    ]
    async with rig.context.database.writing() as tx:
        await record_blocks(tx, [Block(number, block_hash(number), block_hash(number - 1), 0)])
        await record_balances(tx, held)
        await record_allowances(tx, allowed)


def a_feed(rig: TradingRig) -> ChainFeed:
    context = rig.context
    return ChainFeed(
        engine=rig.host.engine,
        database=context.database,
        exchanges=context.exchanges,
        confirmations=1,
        observed_per_command_max=ENTRIES_MAX,
    )


async def run_until(rig: TradingRig, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop a run of the feed when the engine has accepted this many parts."""
    engine, taken = rig.host.engine, 0

    async def submit(command: Command) -> Result:
        nonlocal taken
        if taken == parts:
            raise EngineBusy
        taken += 1
        return await engine.__class__.submit(engine, command)

    with monkeypatch.context() as patching:
        patching.setattr(engine, "submit", submit)
        with pytest.raises(EngineBusy):
            await a_feed(rig).run_once()


def known(rig: TradingRig) -> tuple[set[int], set[int], int, Bytes32]:
    """Return the balances and allowances that the engine knows, and their block."""
    state = rig.host.engine.state
    traders = [an_address(name) for name in NAMES]
    return (
        {state.ledger.look_up(trader, COLLATERAL).confirmed_units for trader in traders},
        {state.ledger.allowance_units(trader, EXCHANGE, COLLATERAL) for trader in traders},
        state.observed_block,
        state.observed_hash,
    )


def at_block(number: int, units: int) -> tuple[set[int], set[int], int, Bytes32]:
    return {units}, {units}, number, block_hash(number)


def observations(folder: Path) -> list[ObserveChain]:
    """Return the observations in a journal."""
    commands = [decode_command(entry.payload) for entry in read_entries(folder)]
    return [command for command in commands if isinstance(command, ObserveChain)]


async def test_an_observation_is_submitted_in_parts_of_limited_size(
    rig: TradingRig, tmp_path: Path
) -> None:
    await a_feed(rig).run_once()
    assert known(rig) == at_block(1, 100 * TOKEN)
    parts = observations(tmp_path / "journal")
    assert [(part.part, part.parts) for part in parts] == [(n, PARTS) for n in range(1, PARTS + 1)]
    assert {len(part.balances) + len(part.allowances) for part in parts[:-1]} == {ENTRIES_MAX}


async def test_a_run_without_news_submits_nothing(rig: TradingRig) -> None:
    feed = a_feed(rig)
    await feed.run_once()
    sequence = rig.host.engine.sequence
    await feed.run_once()
    assert rig.host.engine.sequence == sequence


async def test_a_small_observation_is_one_command(rig: TradingRig, tmp_path: Path) -> None:
    await a_feed(rig).run_once()
    async with rig.context.database.writing() as tx:
        await record_blocks(tx, [Block(2, block_hash(2), block_hash(1), 0)])
        await record_balances(tx, [Balance(an_address(NAMES[0]), COLLATERAL, 5, 2)])
    await a_feed(rig).run_once()
    last = observations(tmp_path / "journal")[-1]
    assert (last.part, last.parts, len(last.balances)) == (1, 1, 1)
    assert rig.host.engine.state.observed_block == 2


@pytest.mark.parametrize("parts", range(PARTS))
async def test_a_run_that_stopped_between_two_parts_is_started_again_by_the_next(
    rig: TradingRig, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    before = known(rig)
    await run_until(rig, parts, monkeypatch)
    assert known(rig) == before
    await a_feed(rig).run_once()
    assert known(rig) == at_block(1, 100 * TOKEN)
    assert rig.host.engine.state.observed_parts == []


@pytest.mark.parametrize("parts", range(PARTS))
async def test_after_a_restart_between_two_parts_everything_is_submitted_again(
    database_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    async with a_rig(tmp_path / "journal", database_file) as rig:
        await rig.open("market")
        await index(rig, 1, 100 * TOKEN)
        before = known(rig)
        await run_until(rig, parts, monkeypatch)
    async with a_rig(tmp_path / "journal", database_file) as rig:
        assert len(rig.host.engine.state.observed_parts) == parts
        assert known(rig) == before
        await index(rig, 2, 70 * TOKEN)
        await a_feed(rig).run_once()
        assert known(rig) == at_block(2, 70 * TOKEN)
    async with a_rig(tmp_path / "journal", database_file) as rig:
        assert known(rig) == at_block(2, 70 * TOKEN)
        assert rig.host.engine.state.observed_parts == []


async def test_no_order_uses_a_balance_of_an_incomplete_observation(
    rig: TradingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    buying = a_placing(a_buy(NAMES[0]))
    await run_until(rig, PARTS - 1, monkeypatch)
    with pytest.raises(InsufficientBalance):
        await rig.submit(buying)
    await a_feed(rig).run_once()
    await rig.submit(buying)
    assert list(rig.host.engine.state.live_orders) == [buying.order_id]


WIDEST_WALLET = an_address("anybody")
WIDEST_ASSET = AssetId(str(2**256 - 1))
WIDEST_BALANCE = BalanceSeen(WIDEST_WALLET, WIDEST_ASSET, AMOUNT_UNITS_MAX)
WIDEST_ALLOWANCE = AllowanceSeen(
    WIDEST_WALLET, EXCHANGE, is_collateral=True, units=AMOUNT_UNITS_MAX
)
WIDEST_TRADE = TradeSeen(trade_id_of(a_word("order"), 0), TradeStatus.CONFIRMED, a_word("tx"))


@pytest.mark.parametrize(
    "widest",
    [
        an_observation([WIDEST_BALANCE] * OBSERVED_PER_COMMAND_MAX),
        an_observation(allowances=[WIDEST_ALLOWANCE] * OBSERVED_PER_COMMAND_MAX),
        an_observation(trades=[WIDEST_TRADE] * OBSERVED_PER_COMMAND_MAX),
    ],
    ids=["balances", "allowances", "trades"],
)
def test_the_largest_part_fits_the_journal(widest: ObserveChain) -> None:
    assert len(encode_command(widest)) <= PAYLOAD_BYTES_MAX


async def store_ends(
    rig: TradingRig, number: int, *, canceled: Sequence[Bytes32] = (), nonce: int = 0
) -> None:
    """Store a block in which orders were canceled and the first trader raised its nonce."""
    places = [(number, index, 0) for index in range(len(canceled))]
    raised = [RaisedNonce(number, 99, 0, EXCHANGE, an_address(NAMES[0]), nonce)]
    async with rig.context.database.writing() as tx:
        await record_blocks(tx, [Block(number, block_hash(number), block_hash(number - 1), 0)])
        await record_canceled_orders(
            tx,
            [
                CanceledOrder(*place, EXCHANGE, order_id)
                for place, order_id in zip(places, canceled, strict=True)
            ],
        )
        await record_raised_nonces(tx, raised if nonce else [])


async def test_a_cancel_on_the_chain_is_submitted_once(rig: TradingRig, tmp_path: Path) -> None:
    feed = a_feed(rig)
    await feed.run_once()
    live, later = a_placing(a_buy(NAMES[0])), a_placing(a_buy(NAMES[1]))
    await rig.submit(live)
    await store_ends(rig, 2, canceled=[live.order_id, later.order_id])
    await feed.run_once()
    await feed.run_once()
    observed = [each for each in observations(tmp_path / "journal") if each.cancels]
    assert [[seen.order_id for seen in each.cancels] for each in observed] == [
        [live.order_id, later.order_id]
    ]
    assert rig.host.engine.state.live_orders == {}
    with pytest.raises(OrderCanceledOnChain):
        await rig.submit(later)


async def test_h4_a_cancel_on_the_chain_closes_a_delayed_order(rig: TradingRig) -> None:
    feed, state = a_feed(rig), rig.host.engine.state
    await feed.run_once()
    await rig.submit(a_placing(a_buy(NAMES[0], 40)))
    await rig.submit(DelayMarket(NOW_MS, a_word("market"), 3_000))
    delayed = a_placing(a_buy(NAMES[1], 60, is_yes=False))
    await rig.submit(delayed)
    assert list(state.delays.orders) == [delayed.order_id]
    await store_ends(rig, 2, canceled=[delayed.order_id])
    await feed.run_once()
    assert not state.delays.orders
    rig.clock.move(3_000)
    await rig.host.engine.expire()
    assert not state.unsettled_trades


async def test_a_reorg_lowers_a_raised_nonce_but_restores_no_order(rig: TradingRig) -> None:
    feed = a_feed(rig)
    await feed.run_once()
    closed, later = a_placing(a_buy(NAMES[0])), a_placing(a_buy(NAMES[0], salt="2"))
    await rig.submit(closed)
    await store_ends(rig, 2, nonce=1)
    await feed.run_once()
    with pytest.raises(InvalidOrderNonce):
        await rig.submit(later)
    async with rig.context.database.writing() as tx:
        await unwind(tx, 1)
        await record_blocks(tx, [Block(2, a_word("another"), block_hash(1), 0)])
    await feed.run_once()
    await rig.submit(later)
    assert list(rig.host.engine.state.live_orders) == [later.order_id]


async def store_stops(rig: TradingRig, number: int, stops: Mapping[StopKind, int]) -> None:
    """Store a block in which the first trader set these stops."""
    maker = an_address(NAMES[0])
    async with rig.context.database.writing() as tx:
        await record_blocks(tx, [Block(number, block_hash(number), block_hash(number - 1), 0)])
        await record_stops(
            tx,
            [
                MakerStop(number, index, kind, EXCHANGE, maker, value)
                for index, (kind, value) in enumerate(stops.items())
            ],
        )


async def test_audit_l5_a_stop_ends_orders_until_its_block_is_undone(
    rig: TradingRig, tmp_path: Path
) -> None:
    feed, engine = a_feed(rig), rig.host.engine
    await feed.run_once()
    ended, later = a_placing(a_v2_buy(NAMES[0])), a_placing(a_v2_buy(NAMES[0], salt="2"))
    other = a_placing(a_v2_buy(NAMES[1]))
    await rig.submit(ended)
    await rig.submit(other)
    await store_stops(rig, 2, {StopKind.TIMESTAMP: NOW_MS + 1})
    await feed.run_once()
    await feed.run_once()
    assert list(engine.state.live_orders) == [other.order_id]
    observed = [each for each in observations(tmp_path / "journal") if each.stops]
    assert [len(each.stops) for each in observed] == [1]
    engine.state = decode_state(encode_state(engine.state))
    with pytest.raises(OrderStopped, match=str(NOW_MS + 1)):
        await rig.submit(later)
    async with rig.context.database.writing() as tx:
        await unwind(tx, 1)
        await record_blocks(tx, [Block(2, a_word("another"), block_hash(1), 0)])
    await feed.run_once()
    await rig.submit(later)
    assert list(engine.state.live_orders) == [other.order_id, later.order_id]


async def test_attack_m1_tables_behind_the_observed_block_cancel_no_covered_order(
    rig: TradingRig,
) -> None:
    """A restored database is indexed again block by block; what it lacks meanwhile is not gone."""
    feed = a_feed(rig)
    await index(rig, 2, 100 * TOKEN)
    await feed.run_once()
    covered = a_placing(a_buy(NAMES[0]))
    await rig.submit(covered)
    async with rig.context.database.writing() as tx:
        await unwind(tx, 0)
        await record_blocks(tx, [Block(1, block_hash(1), block_hash(0), 0)])

    await feed.run_once()

    assert known(rig) == at_block(2, 100 * TOKEN)
    assert list(rig.host.engine.state.live_orders) == [covered.order_id]
    await index(rig, 2, 100 * TOKEN)
    await index(rig, 3, 90 * TOKEN)
    await feed.run_once()
    assert known(rig) == at_block(3, 90 * TOKEN)
    assert list(rig.host.engine.state.live_orders) == [covered.order_id]


async def test_a_halted_market_takes_no_orders_until_it_resumes(rig: TradingRig) -> None:
    feed, engine = a_feed(rig), rig.host.engine
    market = RegisteredMarket(a_word("market"), "request")
    await feed.run_once()
    resting = a_placing(a_buy(NAMES[0], 30))
    await engine.submit(resting)
    async with rig.context.database.writing() as tx:
        await record_halt(tx, market, "lost", 0)
    await feed.run_once()
    with pytest.raises(MarketHalted, match="the chain lost its question"):
        await engine.submit(a_placing(a_buy(NAMES[0], 31)))
    assert resting.order_id in engine.state.live_orders
    restored = decode_state(encode_state(engine.state))
    assert list(restored.halted_markets) == [market.condition_id]
    async with rig.context.database.writing() as tx:
        await record_resumption(tx, market)
    await feed.run_once()
    await engine.submit(a_placing(a_buy(NAMES[0], 31)))
