"""Trades and volumes that `verify data` compares with each other and with the chain: what is wrong is named."""

from collections.abc import Callable, Sequence
from typing import Final

import pytest
import sqlalchemy as sa
from tests.rigs.sandbox import SandboxMarket, an_indexer
from tests.settlement.rig import UNIT, SettlementRig, Trader

from foretell.domain.exchange.trade import TradeStatus
from foretell.indexer.follow import follow
from foretell.reconciliation.data_report import DataReport
from foretell.reconciliation.verify import verify_data
from foretell.store.database import Database
from foretell.store.tables import (
    failed_volumes,
    fills,
    quote_points,
    quotes,
    settlement_tx_attempts,
    trades,
)

pytestmark = pytest.mark.anyio

MINUTE_MS: Final = 60_000
BLOCKS_PER_LOOK: Final = 5
FAILED_TRADES: Final = 1
"""They are in no block."""

Changes = Callable[[str, str], Sequence[sa.Executable]]
"""Takes a confirmed and a failed trade."""


async def verified(rig: SettlementRig) -> DataReport:
    return await verify_data(rig.database, rig.sandbox.rpc, rig.sandbox.deployment)


async def trade(rig: SettlementRig, market: SandboxMarket, traders: list[Trader]) -> list[str]:
    """Make trades of every kind that settle, one of which a failing part leaves; return them, and last that part."""
    alice, bob, carol = traders
    rig.change(attempts_max=2)
    await alice.sell(market, 40, 10 * UNIT)
    await alice.sell(market, 41, 10 * UNIT)
    made = [*(await bob.buy(market, 41, 15 * UNIT)).trade_ids]
    rig.clock.move(MINUTE_MS)
    await bob.buy(market, 30, 10 * UNIT, is_yes=False)
    made += (await carol.buy(market, 75, 4 * UNIT)).trade_ids
    await rig.settle()
    rig.clock.move(MINUTE_MS)
    await bob.sell(market, 60, 10 * UNIT, is_yes=False)
    made += (await alice.sell(market, 35, 3 * UNIT)).trade_ids
    await carol.sell(market, 50, 7 * UNIT)
    made += (await bob.buy(market, 55, 7 * UNIT)).trade_ids
    await carol.raise_nonce()
    await rig.settle()
    assert await rig.statuses(made) == [TradeStatus.CONFIRMED] * len(made)
    has_failed = trades.c.status == TradeStatus.FAILED.value
    async with rig.database.reading() as tx:
        [failed] = await tx.all(sa.select(trades.c.trade_id).where(has_failed))
    return [*made, failed.trade_id]


@pytest.mark.parametrize("has_batches", [False, True])
async def test_trades_that_settled_and_one_that_failed_are_what_the_chain_says(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], *, has_batches: bool
) -> None:
    if has_batches:
        rig.has_batches = True
        await rig.restart()
    made = await trade(rig, market, traders)
    report = await verified(rig)
    assert [str(each) for each in report.differences] == []
    assert report.rows["trades"] == len(made)
    assert (report.rows["quotes"], report.rows["quote_points"]) == (1, 3)
    assert report.rows["failed_volumes"] == 2


def of_trade(trade_id: str) -> sa.Update:
    return trades.update().where(trades.c.trade_id == trade_id)


WRONG: Final[dict[str, tuple[Changes, set[str]]]] = {
    "a volume": (
        lambda *_: [quotes.update().values(volume_units=quotes.c.volume_units + 1)],
        {"quotes"},
    ),
    "a failed sum": (
        lambda *_: [quotes.update().values(failed_units=quotes.c.failed_units + 1)],
        {"quotes"},
    ),
    "a last price": (lambda *_: [quotes.update().values(last_price_ticks=7)], {"quotes"}),
    "a last side": (lambda *_: [quotes.update().values(last_side="SELL")], {"quotes"}),
    "a minute": (
        lambda *_: [
            quote_points.update()
            .where(
                quote_points.c.minute
                == sa.select(sa.func.min(quote_points.c.minute)).scalar_subquery()
            )
            .values(volume_units=quote_points.c.volume_units - 1)
        ],
        {"quote_points"},
    ),
    "no minute": (lambda *_: [quote_points.delete()], {"quote_points"}),
    "what has failed of a minute": (
        lambda *_: [failed_volumes.update().values(units=failed_volumes.c.units + 1)],
        {"failed_volumes"},
    ),
    "nothing that has failed": (lambda *_: [failed_volumes.delete()], {"failed_volumes"}),
    "no quote": (lambda *_: [quotes.delete()], {"quotes"}),
    "the size of a trade": (
        lambda settled, _: [of_trade(settled).values(size_units=trades.c.size_units + 1)],
        {"trades"},
    ),
    "the size of a fill": (
        lambda settled, _: [
            fills.update()
            .where(fills.c.trade_id == settled)
            .values(making_units=fills.c.making_units + 1)
        ],
        {"trades"},
    ),
    "the collateral of a trade": (
        lambda settled, _: [of_trade(settled).values(cost_units=trades.c.cost_units + 1)],
        {"trades", "quotes", "quote_points"},
    ),
    "another transaction": (
        lambda settled, _: [of_trade(settled).values(tx_hash=f"0x{7:064x}")],
        {"trades"},
    ),
    "a failed trade that is confirmed": (
        lambda _, failed: [
            of_trade(failed).values(status="CONFIRMED", tx_hash=f"0x{7:064x}"),
            quotes.update().values(failed_units=0),
            failed_volumes.delete(),
        ],
        {"trades"},
    ),
    "a settled trade that has failed": (
        lambda settled, _: [of_trade(settled).values(status="FAILED")],
        {"trades", "quotes", "failed_volumes"},
    ),
    "no trade": (
        lambda settled, _: [trades.delete().where(trades.c.trade_id == settled)],
        {"trades", "quotes", "quote_points"},
    ),
}


@pytest.mark.parametrize("what", WRONG)
async def test_what_is_wrong_is_named(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], what: str
) -> None:
    changes, tables = WRONG[what]
    settled, *_, failed = await trade(rig, market, traders)
    async with rig.database.writing() as tx:
        for change in changes(settled, failed):
            assert await tx.execute(change) > 0
    report = await verified(rig)
    assert report.differing == tables
    named = [each.key for each in report.differences if each.table == "trades"]
    if "trades" in tables and what != "no trade":
        assert named == [failed if what.startswith("a failed trade") else settled]


async def test_a_match_past_the_engine_is_no_difference_unless_settlement_sent_it(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    """A trade that is gone with its quote and points is found by the transaction that settlement sent."""
    await trade(rig, market, traders)
    async with rig.database.writing() as tx:
        for table in (trades, fills, quotes, quote_points, failed_volumes):
            await tx.execute(table.delete())
    report = await verified(rig)
    hashes = {each.key[0] for each in report.differences if isinstance(each.key, tuple)}
    assert report.differing == {"trades"}
    async with rig.database.writing() as tx:
        is_other = settlement_tx_attempts.c.tx_hash.in_(hashes)
        assert await tx.execute(settlement_tx_attempts.delete().where(is_other)) == len(hashes)
    assert (await verified(rig)).differences == []


async def test_a_trade_is_not_compared_before_its_settlement_is_read(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    """At each moment in the life of a trade the tables are right, whichever of them are behind."""
    rig.confirmations = 4
    await rig.restart()
    alice, bob, _ = traders
    await alice.sell(market, 40, 10 * UNIT)
    await bob.buy(market, 40, 10 * UNIT)
    await rig.projection.catch_up()
    statuses = set()
    for act in (rig.act, rig.sandbox.mine, lambda: follow(rig.indexer), rig.see, rig.sandbox.mine):
        await act()
        report = await verified(rig)
        assert [str(each) for each in report.differences] == []
        async with rig.database.reading() as tx:
            statuses |= {row.status for row in await tx.all(sa.select(trades.c.status))}
    assert statuses >= {"MATCHED", "MINED"}
    await rig.settle()
    report = await verified(rig)
    assert (report.differences, report.rows["trades"]) == ([], 1)


async def test_an_index_that_is_read_again_lacks_the_newest_trades_and_is_not_wrong(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], fresh_database: Database
) -> None:
    """The journal gives a new database all trades at once, and its index comes block by block."""
    made = await trade(rig, market, traders)
    tables = trades, fills, quotes, quote_points, failed_volumes
    async with rig.database.reading() as tx:
        rows = [await tx.all(sa.select(table)) for table in tables]
    async with fresh_database.writing() as tx:
        for table, found in zip(tables, rows, strict=True):
            await tx.insert_rows(table, [tuple(row) for row in found])
    indexer = an_indexer(rig.sandbox, fresh_database, blocks_per_range_max=BLOCKS_PER_LOOK)
    compared = []
    is_behind = True
    while is_behind:
        is_behind = (await follow(indexer)).is_behind
        report = await verify_data(fresh_database, rig.sandbox.rpc, rig.sandbox.deployment)
        assert [str(each) for each in report.differences] == []
        compared.append(report.rows["trades"])
    assert compared == sorted(compared)
    assert (compared[0], compared[-1]) == (FAILED_TRADES, len(made))
