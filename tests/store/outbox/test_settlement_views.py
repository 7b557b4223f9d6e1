"""Debts of wallets from unsettled trades, and the wallets of failed settlements."""

import msgspec
import pytest
from tests.rigs.values import an_address
from tests.store.trading.test_trades import a_row, record

from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.exchange.wallets.wallet_bars import barred_by_operator, ended_by_operator
from foretell.store.database import Database
from foretell.store.outbox.settlement_views import (
    load_gas_of_failures,
    load_owed,
    load_troubled,
    record_failures,
)
from foretell.store.outbox.wallet_bars import record_bar

pytestmark = pytest.mark.anyio

ALICE, BOB, CAROL, DAVE = map(an_address, ("alice", "bob", "carol", "dave"))
DAY = 20_000


async def test_what_unsettled_trades_take_is_added_up(database: Database) -> None:
    waiting, retried = a_row(1, "alice", "bob"), a_row(2, "bob", "alice")
    settled = a_row(3, "alice", "bob")._replace(status=TradeStatus.MINED)
    retried = retried._replace(status=TradeStatus.RETRYING)
    await record(database, waiting, retried, settled)
    sold = a_row(4, "carol", "dave")
    (fill,) = sold.trade.fills
    fills = (msgspec.structs.replace(fill, side=Side.SELL),)
    sold = sold._replace(trade=msgspec.structs.replace(sold.trade, fills=fills))
    await record(database, sold)
    taken, made = sold.trade.taker_fill_units, fill.making_units
    async with database.reading() as tx:
        assert await load_owed(tx) == {
            (ALICE, COLLATERAL): taken + made,
            (BOB, COLLATERAL): taken + made,
            (CAROL, COLLATERAL): taken,
            (DAVE, sold.fill_tokens[0]): made,
        }


async def test_a_failed_settlement_and_a_bar_make_a_wallet_troubled(database: Database) -> None:
    await record(database, a_row(1, "alice", "bob"))
    async with database.writing() as tx:
        for _ in range(2):
            await record_failures(tx, ["trade-1"], DAY, 0)
        await record_bar(tx, barred_by_operator(None, CAROL, "asked for", 1))
        ended = barred_by_operator(None, DAVE, "asked for", 1)
        await record_bar(tx, ended_by_operator(ended, DAVE, 2))
    async with database.reading() as tx:
        wallets = [ALICE, BOB, CAROL, DAVE]
        assert await load_troubled(tx, wallets, DAY) == {ALICE, BOB, CAROL}
        assert await load_troubled(tx, wallets, DAY + 1) == {CAROL}
        assert await load_troubled(tx, [DAVE], DAY) == frozenset()


async def test_wallets_of_failed_settlements_without_gas_are_forgotten_after_a_day(
    database: Database,
) -> None:
    await record(database, a_row(1, "alice", "bob"), a_row(2, "carol", "dave"))
    async with database.writing() as tx:
        await record_failures(tx, ["trade-1"], DAY, 0)
        await record_failures(tx, ["trade-2"], DAY + 1, 0)
        assert await load_troubled(tx, [ALICE, CAROL], DAY) == {ALICE, CAROL}
        await record_failures(tx, ["trade-2"], DAY + 2, 0)
        assert await load_troubled(tx, [ALICE, CAROL], DAY) == {CAROL}, "rows without gas go, too"


async def test_the_gas_of_failed_matches_is_that_of_a_day(database: Database) -> None:
    await record(database, a_row(1, "alice", "bob"))
    async with database.writing() as tx:
        await record_failures(tx, ["trade-1"], DAY, 7)
        await record_failures(tx, ["trade-1"], DAY, 8)
        await record_failures(tx, ["trade-1"], DAY + 1, 9)
        assert [await load_gas_of_failures(tx, DAY + day) for day in range(3)] == [15, 9, 0]
        await record_failures(tx, ["trade-1"], DAY + 2, 1)
        assert await load_gas_of_failures(tx, DAY) == 0, "it is forgotten"
