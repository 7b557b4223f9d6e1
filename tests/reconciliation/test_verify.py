"""Every figure of the index against a slow computation from the chain's logs, after random histories."""

import contextlib
import dataclasses
import os
from typing import Any, Final

import pytest
import sqlalchemy as sa
from tests.faults.nodes.lying_node import LIES_OF_LOGS, Lie, lying
from tests.indexer.late_installation import LateInstallation
from tests.indexer.rig import IndexerRig
from tests.reconciliation.history import (
    DEPTH_MAX,
    EventActs,
    RandomHistory,
    first_depth,
    reorganize,
)
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up
from tests.store.live_sums import rebuild

from foretell.chain.rpc import Rpc
from foretell.domain.contracts.calldata import INCREMENT_NONCE
from foretell.domain.errors.chain import ChainInconsistent, NothingIndexed
from foretell.domain.evm.abi import contract_function
from foretell.domain.portfolio.periods import Period
from foretell.indexer.follow import follow
from foretell.reconciliation import fetched_logs
from foretell.reconciliation.chain_figures import ChainFigures
from foretell.reconciliation.comparison import compare_all
from foretell.reconciliation.data_report import DataReport
from foretell.reconciliation.recount import Recount, contracts_of
from foretell.reconciliation.verify import verify_data
from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind
from foretell.store.index.generations import RunningSum
from foretell.store.queries import index_tables
from foretell.store.queries.index_tables import load_indexed_block
from foretell.store.spill import SpillFile
from foretell.store.tables import (
    activities,
    allowance_changes,
    allowances,
    answers,
    balance_changes,
    balances,
    canceled_orders,
    conditions,
    event_totals,
    exchange_fills,
    failed_volumes,
    listing_cursors,
    locked_collateral,
    locked_collateral_changes,
    market_totals,
    payouts,
    position_changes,
    positions,
    quote_points,
    quotes,
    raised_nonces,
    rank_counts,
    rank_parts,
    rank_ties,
    ranking_cursors,
    ranking_marks,
    released_collateral,
    released_collateral_changes,
    series_totals,
    sport_tags,
    standings,
    supplies,
    tags,
    traded_markets,
    traded_volumes,
    trades,
    trading_total_changes,
    trading_totals,
    wins,
)
from foretell.store.tables.listings import AMOUNTS, PRICES

pytestmark = pytest.mark.anyio

HISTORIES: Final = int(os.environ.get("FORETELL_TEST_HISTORIES", "30"))
STEPS: Final = 40
STEPS_OF_MOST: Final = 12
POSTGRES_EACH: Final = 19
"""Every nineteenth history is played on PostgreSQL, too: their first reorganizations differ in depth."""
LONG_EACH: Final = 10
"""Every tenth history is a long one."""
WITH_EVERY_ACT: Final = (10, 20, 50)
"""Long histories with splits, merges, transfers, conversions, redemptions, trades and fees."""
TRIES_MAX: Final = 200
ROWS_HELD: Final = 25
HEAVY_FROM: Final = 1
DAY_S: Final = 86_400
WEEK_S: Final = 7 * DAY_S
BEHIND_ALL_DAYS: Final = 30
"""A reorganization may have taken back days that had passed, and books are not traded before their last trade."""
EVEN_AGAIN: Final = range(2)
"""Rebuilds that find the markets that were listed late, and after which the tables of even generations are read."""

CANCEL_BEFORE: Final = contract_function("cancelBefore(uint256)")
SET_OWNER_SIGNING: Final = contract_function("setOwnerSigning(bool)")

Market = tuple[IndexerRig, EventActs]

OF_POSITION: Final = (
    "size_units",
    "cost_units",
    "bought_units",
    "spent_units",
    "realized_units",
    "changed_at_s",
)
OF_LISTING: Final = (*AMOUNTS, "evenness", "ends_at_ms")
FIGURES: Final = {
    activities: ("size_units", "cost_units", "timestamp_s"),
    allowance_changes: ("units",),
    allowances: ("units",),
    answers: ("timestamp_s",),
    balance_changes: ("units",),
    balances: ("units",),
    event_totals: (*OF_LISTING, "closed_at_s"),
    exchange_fills: ("size_units", "cost_units", "fee_units"),
    failed_volumes: ("units",),
    locked_collateral: ("units",),
    locked_collateral_changes: ("units",),
    market_totals: (*OF_LISTING, *PRICES, "hour_price", "day_price", "week_price", "month_price"),
    payouts: ("payout_yes", "payout_no", "timestamp_s"),
    position_changes: OF_POSITION,
    positions: OF_POSITION,
    quote_points: ("volume_units",),
    quotes: ("volume_units", "failed_units", "last_price_ticks"),
    raised_nonces: ("nonce",),
    rank_counts: ("wallets",),
    rank_parts: ("wallets",),
    rank_ties: ("wallets",),
    released_collateral: ("units",),
    released_collateral_changes: ("units",),
    series_totals: ("volume_units", "open_events"),
    standings: ("volume_units", "gain_units"),
    supplies: ("units",),
    tags: ("event_count",),
    traded_volumes: ("traded_at_s", "volume_high", "volume_low"),
    trading_total_changes: ("trades", "markets", "volume_units"),
    trading_totals: ("trades", "markets", "volume_units"),
    wins: ("realized_units",),
}
"""Every number that is compared."""
IN_EACH_HISTORY: Final = (
    activities,
    allowances,
    balance_changes,
    balances,
    event_totals,
    locked_collateral,
    market_totals,
    position_changes,
    positions,
    quote_points,
    quotes,
    supplies,
    trades,
)


@pytest.mark.parametrize("seed", range(HISTORIES))
async def test_after_a_random_history_every_row_is_what_the_chain_says(
    fresh_sandbox: Sandbox, market: Market, fresh_database: Database, seed: int
) -> None:
    await play_history(fresh_sandbox, market, fresh_database, seed)


@pytest.mark.parametrize("seed", range(0, HISTORIES, POSTGRES_EACH))
async def test_after_a_random_history_every_row_on_postgresql_is_what_the_chain_says(
    fresh_sandbox: Sandbox, market: Market, postgres_database: Database, seed: int
) -> None:
    await play_history(fresh_sandbox, market, postgres_database, seed)


async def play_history(sandbox: Sandbox, market: Market, database: Database, seed: int) -> None:
    """Play a random history, and compare every row."""
    history = RandomHistory(sandbox, *market, database, seed)
    await history.play(STEPS_OF_MOST if seed % LONG_EACH else STEPS)
    await history.confirm()
    report = await verify_data(database, sandbox.rpc, sandbox.deployment)
    assert [str(each) for each in report.differences] == []
    assert report.is_exact
    assert history.unwound_blocks > 0
    assert history.depths[0] == first_depth(seed)
    assert {*history.depths} <= {*range(1, DEPTH_MAX + 1)}
    assert min(report.rows[table.name] for table in IN_EACH_HISTORY) > 0
    if seed in WITH_EVERY_ACT:
        assert await kinds_without_act(database) == set()


async def kinds_without_act(database: Database) -> set[str]:
    """Return the kinds of acts that the index has none of."""
    has_act = sa.exists().where(
        activities.c.wallet == position_changes.c.wallet,
        activities.c.block_number == position_changes.c.block_number,
    )
    async with database.reading() as tx:
        kinds = {row.kind for row in await tx.all(sa.select(activities.c.kind))}
        fees = await tx.first(sa.select(exchange_fills).where(exchange_fills.c.fee_units > 0))
        moved = await tx.first(sa.select(position_changes).where(~has_act))
    others = {"fee": fees, "transfer": moved}
    return {*ActivityKind} - kinds | {name for name, row in others.items() if row is None}


@pytest.mark.parametrize("depth", range(1, DEPTH_MAX + 1))
async def test_after_a_reorganization_of_each_depth_every_row_is_what_the_chain_says(
    fresh_sandbox: Sandbox, market: Market, fresh_database: Database, depth: int
) -> None:
    await reorganize_by(depth, fresh_sandbox, market, fresh_database)


@pytest.mark.parametrize("depth", range(1, DEPTH_MAX + 1))
async def test_after_a_reorganization_every_row_on_postgresql_is_what_the_chain_says(
    fresh_sandbox: Sandbox, market: Market, postgres_database: Database, depth: int
) -> None:
    await reorganize_by(depth, fresh_sandbox, market, postgres_database)


async def reorganize_by(depth: int, sandbox: Sandbox, market: Market, database: Database) -> None:
    """Have the node replace so many blocks, and compare every row."""
    _, acts = market
    await act_in_blocks(sandbox, acts, depth)
    await catch_up(an_indexer(sandbox, database))
    assert await reorganize(sandbox, acts, depth) == depth
    step = await catch_up(an_indexer(sandbox, database))
    assert step.unwound_blocks == depth
    report = await verify_data(database, sandbox.rpc, sandbox.deployment)
    assert report.differences == []
    assert report.rows["positions"] > 0


async def act_in_blocks(sandbox: Sandbox, acts: EventActs, count: int) -> None:
    """Mine so many blocks, each with an act."""
    for _ in range(count):
        await acts.act()
        await sandbox.mine()


@pytest.mark.usefixtures("market")
async def test_stops_of_orders_are_compared_with_the_logs_of_the_exchange(
    fresh_sandbox: Sandbox, fresh_database: Database
) -> None:
    trader, exchange = fresh_sandbox.trader(), fresh_sandbox.deployment.exchange
    await fresh_sandbox.rpc.send("evm_setAutomine", True)  # noqa: FBT003 - the protocol's own
    for calldata in (
        INCREMENT_NONCE.encode(),
        CANCEL_BEFORE.encode(1_790_000_000_000),
        SET_OWNER_SIGNING.encode(False),  # noqa: FBT003 - the contract's own
        SET_OWNER_SIGNING.encode(True),  # noqa: FBT003 - the contract's own
    ):
        await fresh_sandbox.call(trader, exchange, calldata)
    await catch_up(an_indexer(fresh_sandbox, fresh_database))
    report = await verify_data(fresh_database, fresh_sandbox.rpc, fresh_sandbox.deployment)
    assert (report.differences, report.rows["raised_nonces"]) == ([], 4)


async def test_a_figure_that_is_off_by_one_unit_and_a_row_that_is_missing_are_found(
    fresh_sandbox: Sandbox,
    market: Market,
    fresh_database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("foretell.store.index.rankings.parts.HEAVY_FROM", HEAVY_FROM)
    monkeypatch.setattr("foretell.reconciliation.data_report.DIFFERENCES_NAMED_MAX", 10_000)
    history = RandomHistory(fresh_sandbox, *market, fresh_database, 2)
    await history.play(STEPS)
    await market[0].resolve()
    await fresh_sandbox.rpc.send("evm_increaseTime", BEHIND_ALL_DAYS * DAY_S)
    await fresh_sandbox.mine()
    await history.finish()
    header = await fresh_sandbox.reader.header("latest")
    assert header is not None
    for _ in EVEN_AGAIN:
        await rebuild(fresh_database, header.timestamp_s * 1_000)
    async with fresh_database.reading() as tx:
        head = await load_indexed_block(tx)
    assert head is not None
    with SpillFile() as spill:
        figures = ChainFigures(contracts_of(fresh_sandbox.deployment), spill)
        await Recount(fresh_sandbox.rpc, fresh_sandbox.deployment, figures).count_to(
            head.block_number
        )
        assert await differing(fresh_database, figures) == set()
        for table, names in FIGURES.items():
            for name in names:
                column = table.c[name]
                less = sa.update(table).values({name: one_less(column)})
                less = less.where(column == greatest(column))
                assert table.name in await differing(fresh_database, figures, less), column
        for table in (*FIGURES, canceled_orders, conditions, sport_tags, traded_markets):
            deleted = sa.delete(table).where(table.c[0] == greatest(table.c[0]))
            assert table.name in await differing(fresh_database, figures, deleted)
        for name, change in wrong_marks_and_cursors().items():
            assert name.split()[0] in await differing(fresh_database, figures, change), name
        in_another_category = [
            sa.update(table).where(table.c.category == "politics").values(category="poetry")
            for table in (ranking_marks, standings, wins, rank_counts, rank_parts, rank_ties)
        ]
        assert await differing(fresh_database, figures, *in_another_category) == {"ranking_marks"}


def wrong_marks_and_cursors() -> dict[str, sa.Executable]:
    """Return changes of what leaderboards count from, and up to when, by the table with the difference."""
    changes: dict[str, sa.Executable] = {
        "listing_cursors at_ms": sa.update(listing_cursors).values(
            at_ms=listing_cursors.c.at_ms - WEEK_S * 1_000
        )
    }
    is_paid = ranking_marks.c.condition_id.in_(sa.select(payouts.c.condition_id))
    for period in Period:
        key = RunningSum(len(EVEN_AGAIN), period).key
        own = sa.update(ranking_marks).where(ranking_marks.c.period == key)
        changes |= {
            f"ranking_marks {period} paid": own.where(is_paid).values(price="1/3"),
            f"ranking_marks {period} quoted": own.where(~is_paid).values(price="1/3"),
            f"ranking_marks {period} category": own.values(category="poetry"),
        }
        cursor = sa.update(ranking_cursors).where(ranking_cursors.c.period == key)
        changes |= {
            f"ranking_cursors {period} at_s": cursor.values(at_s=ranking_cursors.c.at_s - WEEK_S),
            f"ranking_cursors {period} market_id": cursor.values(market_id=0),
            f"ranking_cursors {period} block_number": cursor.values(block_number=0),
        }
    return changes


def one_less(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """Return the number of a column less one; large ones are texts."""
    if isinstance(column.type, sa.Text):
        return sa.cast(sa.cast(column, sa.BigInteger) - 1, sa.Text)
    return column - 1


def greatest(column: sa.Column[Any]) -> sa.ScalarSelect[Any]:
    return sa.select(sa.func.max(column)).scalar_subquery()


class _TakenBack(Exception):
    """A change of a test that is not to stay."""


async def differing(database: Database, figures: ChainFigures, *changes: sa.Executable) -> set[str]:
    """Return the tables that differ from the chain after changes, which are then taken back."""
    report = DataReport(0, "")
    with contextlib.suppress(_TakenBack):
        async with database.writing() as tx:
            for change in changes:
                assert await tx.execute(change) > 0
            await compare_all(figures, tx, report)
            raise _TakenBack
    return {each.table for each in report.differences}


async def test_the_rows_in_memory_do_not_grow_with_history(
    fresh_sandbox: Sandbox,
    market: Market,
    fresh_database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The comparison with few rows held, pages of a few rows and requests for a few logs is the same one."""
    history = RandomHistory(fresh_sandbox, *market, fresh_database, 7)
    await history.play(STEPS_OF_MOST)
    short = await verify_data(fresh_database, fresh_sandbox.rpc, fresh_sandbox.deployment)
    await history.play(STEPS)
    long = await verify_data(fresh_database, fresh_sandbox.rpc, fresh_sandbox.deployment)
    assert short.rows_held < long.rows_held
    monkeypatch.setattr(index_tables, "ROWS_PER_PAGE", 3)
    monkeypatch.setattr(fetched_logs, "LOGS_PER_REQUEST", 20)
    bounded = await verify_data(
        fresh_database, fresh_sandbox.rpc, fresh_sandbox.deployment, rows_held_max=ROWS_HELD
    )
    assert bounded.rows == long.rows
    assert (bounded.found, bounded.wallets) == (0, long.wallets)
    assert bounded.rows_held == ROWS_HELD < short.rows_held


async def test_an_index_that_goes_on_meanwhile_is_compared_at_its_newest_block(
    fresh_sandbox: Sandbox,
    market: Market,
    fresh_database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig, _ = market
    await rig.act()
    await catch_up(an_indexer(fresh_sandbox, fresh_database))
    counted = Recount.count_to
    blocks: list[int] = []

    async def count_and_go_on(recount: Recount, last_block: int) -> None:
        await counted(recount, last_block)
        if len(blocks) < 3:
            await rig.act()
            await fresh_sandbox.mine()
            await catch_up(an_indexer(fresh_sandbox, fresh_database))
        blocks.append(last_block)

    monkeypatch.setattr(Recount, "count_to", count_and_go_on)
    report = await verify_data(fresh_database, fresh_sandbox.rpc, fresh_sandbox.deployment)
    assert report.differences == []
    assert len(blocks) == 4
    assert report.block_number == blocks[-1] > blocks[0]


@pytest.mark.parametrize("lie", LIES_OF_LOGS)
async def test_a_node_that_omits_repeats_or_reorders_logs_is_caught(
    fresh_sandbox: Sandbox, market: Market, fresh_database: Database, lie: Lie
) -> None:
    rig, _ = market
    await rig.act()
    await follow(an_indexer(fresh_sandbox, fresh_database))
    async with lying(fresh_sandbox.rpc_url, 1, [lie], rate=1.0) as node, Rpc(node.url) as rpc:
        await verify_data(fresh_database, rpc, fresh_sandbox.deployment)
        node.is_lying = True
        try:
            report = await verify_data(fresh_database, rpc, fresh_sandbox.deployment)
        except ChainInconsistent:
            assert node.lies["logs"]
        else:
            assert not report.is_exact


async def test_an_index_behind_a_node_that_lies_of_logs_is_exact_or_behind_but_never_wrong(
    fresh_sandbox: Sandbox, market: Market, fresh_database: Database
) -> None:
    rig, acts = market
    async with (
        lying(fresh_sandbox.rpc_url, 2, LIES_OF_LOGS, rate=0.5) as node,
        Rpc(node.url) as rpc,
    ):
        node.is_lying = True
        refusals = 0
        for _ in range(TRIES_MAX):
            context = an_indexer(fresh_sandbox, fresh_database, rpc, blocks_per_range_max=9)
            try:
                step = await follow(context)
            except ChainInconsistent:
                refusals += 1
                continue
            if step.last is not None and step.last.block_number == step.head_number:
                break
            await acts.act()
    assert refusals > 0
    report = await verify_data(fresh_database, fresh_sandbox.rpc, fresh_sandbox.deployment)
    assert report.is_exact
    assert report.rows["positions"] > 0
    assert rig.condition_id


async def test_a_chain_with_another_block_than_the_indexed_one_is_refused(
    fresh_sandbox: Sandbox, market: Market, fresh_database: Database
) -> None:
    with pytest.raises(NothingIndexed):
        await verify_data(fresh_database, fresh_sandbox.rpc, fresh_sandbox.deployment)
    bottom, snapshot = (
        await fresh_sandbox.reader.head(),
        await fresh_sandbox.rpc.send("evm_snapshot"),
    )
    await market[0].act()
    await fresh_sandbox.mine()
    await catch_up(an_indexer(fresh_sandbox, fresh_database))
    replaced = await fresh_sandbox.reader.head() - bottom
    assert await fresh_sandbox.rpc.send("evm_revert", snapshot)
    await fresh_sandbox.rpc.send("evm_increaseTime", 7)
    await fresh_sandbox.mine(replaced)
    with pytest.raises(ChainInconsistent):
        await verify_data(fresh_database, fresh_sandbox.rpc, fresh_sandbox.deployment)


async def test_what_wallets_held_before_the_first_block_is_no_difference(
    fresh_sandbox: Sandbox, market: Market, fresh_database: Database
) -> None:
    """Of three traders only the first two are read; a wrong balance of theirs is found all the same."""
    rig, _ = market
    await rig.act()
    start_block = await fresh_sandbox.reader.head() + 1
    late = LateInstallation(fresh_sandbox, fresh_database, start_block)
    deployment = dataclasses.replace(fresh_sandbox.deployment, start_block=start_block)
    read = [trader.address for trader in rig.traders[:2]]
    await late.ask(*read)
    for _ in range(8):
        await rig.act()
        await catch_up(late.indexer(blocks_per_range_max=2))
        report = await verify_data(fresh_database, fresh_sandbox.rpc, deployment)
        assert report.differences == []
    funds = [await late.funds(each) for each in read]
    held = [each[0] for each in funds]
    assert min(held) > 0
    assert funds == [await late.on_chain(each) for each in read]
    less = {"units": balances.c.units - 1}
    is_it = balances.c.wallet == read[0], balances.c.asset == "0"
    async with fresh_database.writing() as tx:
        assert await tx.execute(sa.update(balances).where(*is_it).values(less)) == 1
    [found] = (await verify_data(fresh_database, fresh_sandbox.rpc, deployment)).differences
    assert (found.key, found.expected) == ((read[0], "0"), held[0])
    assert found.of_table == held[0] - 1
