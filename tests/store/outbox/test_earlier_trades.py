"""Earlier trades of the same wallets that stand still: their exchange is closed, or their market halted."""

from collections.abc import Collection
from typing import Any

import pytest
from tests.rigs.rows import a_market_row, an_event_row
from tests.rigs.values import EXCHANGE, NEG_RISK_EXCHANGE, NOW_MS, a_word
from tests.store.outbox.test_transactions import a_tx
from tests.store.trading.test_trades import a_row, record

from foretell.domain.exchange.settlement import EarlierTrades, Settlement
from foretell.domain.values.hexadecimal import Address
from foretell.store.creation.halted_markets import (
    RegisteredMarket,
    record_halt,
    record_resumption,
)
from foretell.store.creation.markets import record_event
from foretell.store.database import Database
from foretell.store.outbox.settlements import load_earlier, record_settlements
from foretell.store.outbox.transactions import SETTLEMENT, TxOutbox

pytestmark = pytest.mark.anyio

NONE, MAY_PASS, FAIL = EarlierTrades.NONE, EarlierTrades.MAY_PASS, EarlierTrades.FAIL
TX_ID = "settle:trade-1:1"
RAIN = RegisteredMarket(a_word("rain"), "request")
EARLIER, LATER = a_row(1, "alice", "bob", market="rain"), a_row(2, "alice", "bob", market="snow")


@pytest.fixture
async def database(database: Database) -> Database:
    """Two trades of the same wallets, the later one at the other exchange."""
    rain, snow = a_market_row("rain"), a_market_row("snow", exchange=NEG_RISK_EXCHANGE)
    async with database.writing() as tx:
        for row in (rain, snow):
            await record_event(tx, an_event_row(row.question, row), NOW_MS)
    await record(database, EARLIER, LATER)
    return database


async def store(database: Database, **fields: Any) -> None:
    async with database.writing() as tx:
        await record_settlements(tx, [Settlement("trade-1")._replace(**fields)])


async def earlier_of(database: Database, closed: Collection[Address] = ()) -> EarlierTrades:
    async with database.reading() as tx:
        return await load_earlier(tx, LATER, closed)


@pytest.mark.parametrize(
    ("closed", "wanted"),
    [((), MAY_PASS), ((NEG_RISK_EXCHANGE,), MAY_PASS), ((EXCHANGE,), FAIL)],
    ids=["none", "another", "its own"],
)
@pytest.mark.parametrize("fields", [None, {}, {"tx_id": TX_ID}], ids=["new", "waits", "named"])
async def test_an_earlier_trade_counts_as_failing_while_its_exchange_is_closed(
    database: Database,
    fields: dict[str, Any] | None,
    closed: tuple[Address, ...],
    wanted: EarlierTrades,
) -> None:
    if fields is not None:
        await store(database, **fields)
    assert await earlier_of(database, closed) is wanted


async def test_an_earlier_trade_that_is_on_its_way_to_a_closed_exchange_may_pass(
    database: Database,
) -> None:
    await store(database, tx_id=TX_ID)
    assert await TxOutbox(database, SETTLEMENT).record_new(a_tx(TX_ID))
    assert await earlier_of(database, (EXCHANGE,)) is MAY_PASS


async def test_an_earlier_trade_of_a_halted_market_counts_as_failing_until_that_resumes(
    database: Database,
) -> None:
    async with database.writing() as tx:
        await record_halt(tx, RAIN, "lost", NOW_MS)
    assert await earlier_of(database) is FAIL
    await store(database, tx_id=TX_ID)
    assert await earlier_of(database) is MAY_PASS
    await store(database)
    assert await earlier_of(database) is FAIL
    async with database.writing() as tx:
        await record_resumption(tx, RAIN)
    assert await earlier_of(database) is MAY_PASS


async def test_a_trade_that_is_given_up_is_no_earlier_one_at_a_closed_exchange(
    database: Database,
) -> None:
    await store(database, attempts=8, is_given_up=True)
    assert await earlier_of(database, (EXCHANGE,)) is NONE
