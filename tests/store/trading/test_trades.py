import asyncio
from typing import Any

import msgspec
import pytest
from tests.rigs.values import NOW_MS, TOKEN, a_buy, a_word, an_address, an_asset
from tests.store.trading.test_orders import a_row as an_order

from foretell.domain.exchange.matching import Fill, MatchType
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.settlement import EarlierTrades, Settlement
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.store.database import Database
from foretell.store.outbox.due_settlements import load_due_settlements
from foretell.store.outbox.settlements import (
    load_earlier,
    load_open_settlements,
    name_settlements,
    record_settlements,
)
from foretell.store.trading.orders import record_orders
from foretell.store.trading.trades import (
    TOPIC,
    Quote,
    TradeChange,
    TradeRow,
    advance_sequence,
    load_market_trades,
    load_quotes,
    load_sequence,
    load_trade_ids,
    load_trades_by_id,
    record_quotes,
    record_trade_changes,
    record_trades,
)

pytestmark = pytest.mark.anyio

HOUR_MS = 3_600_000
BEGUN_WITHIN_S = 0.5
"""Time after which another transaction waits for the one that is open."""

YES = an_asset(is_yes=True)
NO = an_asset(is_yes=False)
QUOTE = Quote(a_word("market"), 100, 40, None, None, None, 0, NOW_MS)


def a_fill(maker: str, order: str = "maker order") -> Fill:
    return Fill(
        maker_order_id=a_word(order),
        maker=an_address(maker),
        owner=f"key-of-{maker}",
        side=Side.BUY,
        is_yes=False,
        price_ticks=60,
        size_units=10 * TOKEN,
        making_units=6 * TOKEN,
        taking_units=10 * TOKEN,
        match_type=MatchType.MINT,
    )


def a_row(number: int, taker: str = "alice", *makers: str, **fields: Any) -> TradeRow:
    fills = tuple(
        a_fill(maker, f"order of {maker} {number}") for maker in makers or ("bob", "carol")
    )
    trade = Trade(
        trade_id=f"trade-{number}",
        condition_id=a_word(fields.pop("market", "market")),
        taker_order_id=a_word(f"taker order {number}"),
        taker=an_address(taker),
        taker_owner=f"key-of-{taker}",
        side=Side.BUY,
        is_yes=True,
        size_units=20 * TOKEN,
        cost_units=8 * TOKEN,
        taker_fill_units=8 * TOKEN,
        matched_at_ms=NOW_MS + 1000 * number,
        fills=fills,
        ticks_per_one=fields.pop("ticks_per_one", 100),
    )
    row = TradeRow(
        trade=trade,
        sequence=number,
        token_id=YES,
        fill_tokens=tuple(NO for _ in fills),
        status=TradeStatus.MATCHED,
        tx_hash="",
        updated_at_ms=NOW_MS,
    )
    return row._replace(**fields)


async def record(database: Database, *rows: TradeRow) -> None:
    async with database.writing() as tx:
        await record_trades(tx, rows)


async def test_a_stored_trade_is_loaded_with_its_fills(database: Database) -> None:
    row = a_row(1)
    await record(database, row)
    await record(database)
    async with database.reading() as tx:
        assert await load_trades_by_id(tx, ["trade-1", "nothing"]) == [row]


async def test_the_last_trades_of_a_market_are_loaded(database: Database) -> None:
    await record(database, a_row(1), a_row(2), a_row(3, market="other"), a_row(4))
    async with database.reading() as tx:
        rows = await load_market_trades(tx, a_word("market"), 2)
    assert [row.sequence for row in rows] == [4, 2]


async def test_a_trades_new_status_is_loaded(database: Database) -> None:
    await record(database, a_row(1), a_row(2))
    change = TradeChange("trade-1", TradeStatus.MINED, a_word("tx"), NOW_MS + 7)
    async with database.writing() as tx:
        await record_trade_changes(tx, [change])
        await record_trade_changes(tx, [])
    mined = a_row(1, status=TradeStatus.MINED, tx_hash=a_word("tx"), updated_at_ms=NOW_MS + 7)
    async with database.reading() as tx:
        assert await load_trades_by_id(tx, ["trade-1"]) == [mined]
        assert await load_trades_by_id(tx, ["trade-2"]) == [a_row(2)]


async def test_recorded_trades_wake_the_watches_on_them(database: Database) -> None:
    watch = await database.watch(TOPIC)
    await record(database, a_row(1))
    assert await watch.wait(5)


def of_two_shards() -> list[TradeRow]:
    """Return trades of a shard that counts from 1 and of one that counts from 7, oldest first."""
    rows = [a_row(number, "alice", "bob") for number in range(1, 7)]
    return [row._replace(sequence=number + 7 * (number % 2)) for number, row in enumerate(rows)]


async def test_trades_of_several_shards_settle_in_order_of_time(database: Database) -> None:
    rows = of_two_shards()
    await record(database, *rows[1::2], *rows[::2])
    async with database.reading() as tx:
        due = await load_due_settlements(tx, NOW_MS, 10)
    assert [each.trade_id for each in due] == [row.trade.trade_id for row in rows]


async def test_a_trade_comes_before_those_that_matched_later_in_any_shard(
    database: Database,
) -> None:
    rows = of_two_shards()
    await record(database, *rows)
    async with database.reading() as tx:
        earlier = [await load_earlier(tx, row) for row in rows]
    assert earlier == [EarlierTrades.NONE, *[EarlierTrades.MAY_PASS] * 5]


def a_settlement(number: int, **fields: Any) -> Settlement:
    return Settlement(f"trade-{number}", retry_at_ms=NOW_MS)._replace(**fields)


async def test_earlier_trades_fail_when_each_has_failed_a_try_and_none_is_on_its_way(
    database: Database,
) -> None:
    rows = [a_row(number, "alice", "bob") for number in range(1, 4)]
    await record(database, *rows)
    steps = [
        (a_settlement(1, attempts=1), EarlierTrades.MAY_PASS),
        (a_settlement(2), EarlierTrades.MAY_PASS),
        (a_settlement(2, attempts=3), EarlierTrades.FAIL),
        (a_settlement(1, attempts=1, tx_id="settle:trade-1:2"), EarlierTrades.MAY_PASS),
        (a_settlement(1, attempts=2), EarlierTrades.FAIL),
        (a_settlement(1, attempts=8, is_given_up=True), EarlierTrades.FAIL),
        (a_settlement(2, attempts=8, is_given_up=True), EarlierTrades.NONE),
    ]
    for settlement, wanted in steps:
        async with database.writing() as tx:
            await record_settlements(tx, [settlement])
        async with database.reading() as tx:
            assert await load_earlier(tx, rows[2]) is wanted


async def test_new_trades_have_half_of_the_places_however_many_failed_ones_are_due(
    database: Database,
) -> None:
    doomed = [a_row(number, "alice", "bob") for number in range(1, 13)]
    await record(database, *doomed, *[a_row(number, "carol", "dora") for number in range(13, 21)])
    async with database.writing() as tx:
        for number in range(1, 13):
            retry_at_ms = NOW_MS - number
            await record_settlements(
                tx, [a_settlement(number, attempts=1, retry_at_ms=retry_at_ms)]
            )

    async def due(limit: int, now_ms: int = NOW_MS) -> list[int]:
        async with database.reading() as tx:
            found = await load_due_settlements(tx, now_ms, limit)
        return sorted(int(each.trade_id.removeprefix("trade-")) for each in found)

    assert await due(0) == []
    assert await due(1) == [13]
    assert await due(2) == [12, 13]
    assert await due(6) == [12, 13, 14, 15, 16, 17]
    assert await due(18) == [*range(3, 13), *range(13, 21)]
    assert await due(20) == list(range(1, 21))
    assert await due(6, NOW_MS - 12) == [12, 13, 14, 15, 16, 17]
    for number, taker, maker in ((21, "bob", "erin"), (22, "erin", "alice"), (23, "erin", "frank")):
        await record(database, a_row(number, taker, maker)._replace(sequence=number))
    assert await due(20, NOW_MS - 20) == [13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]
    assert await due(10, NOW_MS - 20) == [13, 14, 15, 16, 17, 18, 19, 20, 21, 22]
    assert await due(3, NOW_MS - 20) == [13, 14, 23]
    assert await due(4, NOW_MS - 20) == [13, 14, 21, 23]


async def test_s1_new_trades_that_share_transactions_are_not_bound_by_the_places_however_few(
    database: Database,
) -> None:
    await record(database, *[a_row(number, "alice", "bob") for number in range(1, 9)])
    await record(database, *[a_row(number, "carol", "dora") for number in range(9, 31)])
    async with database.writing() as tx:
        for number in range(1, 9):
            await record_settlements(tx, [a_settlement(number, attempts=1)])
    async with database.reading() as tx:
        due = [
            await load_due_settlements(tx, NOW_MS, limit, batched_max=batched_max)
            for limit, batched_max in ((8, 0), (8, 20), (8, 2), (3, 20), (2, 20), (1, 20))
        ]
    new = [sum(each.attempts == 0 for each in found) for found in due]
    assert new == [6, 20, 6, 20, 20, 20]
    assert [len(found) for found in due] == [8, 22, 8, 22, 21, 20]


async def test_a_retry_that_was_due_before_the_clock_was_set_back_is_due(
    database: Database,
) -> None:
    await record(database, *[a_row(number, "alice", "bob") for number in (1, 2)])
    ahead_ms = {1: NOW_MS + 60_000, 2: NOW_MS + HOUR_MS + 60_000}
    waiting = [
        a_settlement(number, attempts=1, retry_at_ms=at_ms) for number, at_ms in ahead_ms.items()
    ]
    async with database.writing() as tx:
        await record_settlements(tx, waiting)
    async with database.reading() as tx:
        due = await load_due_settlements(tx, NOW_MS, 10)
    assert [each.trade_id for each in due] == ["trade-2"]


async def test_a_trade_that_is_carried_is_named_by_no_second_batch(database: Database) -> None:
    await record(database, *[a_row(number, "alice", "bob") for number in range(1, 4)])

    async def named(tx_id: str, *numbers: int) -> bool:
        async with database.writing() as tx:
            return await name_settlements(tx, [a_settlement(each, tx_id=tx_id) for each in numbers])

    assert await named("batch:trade-1:1", 1, 2)
    assert not await named("batch:trade-2:1", 2, 3)
    assert await named("batch:trade-3:1", 3)
    async with database.reading() as tx:
        begun = await load_open_settlements(tx)
    assert [each.settlement.tx_id for each in begun] == ["batch:trade-1:1"] * 2 + [
        "batch:trade-3:1"
    ]


async def test_a_trade_is_not_named_by_a_process_that_read_of_it_before_another_named_it(
    database: Database,
) -> None:
    await record(database, *[a_row(number, "alice", "bob") for number in range(1, 4)])
    batch = [a_settlement(number, tx_id="batch:trade-1:1") for number in range(1, 4)]

    async def name_all() -> bool:
        async with database.writing() as tx:
            return await name_settlements(tx, batch)

    async with database.writing() as tx:
        assert await name_settlements(tx, batch[:2])
        second = asyncio.create_task(name_all())
        done, _ = await asyncio.wait([second], timeout=BEGUN_WITHIN_S)
        assert not done
    assert not await second
    async with database.reading() as tx:
        named = [each.settlement.trade_id for each in await load_open_settlements(tx)]
    assert named == ["trade-1", "trade-2"], "the third is in no transaction that was sent"


async def test_a_trade_is_not_named_by_a_process_that_read_of_it_before_another_tried_it(
    database: Database,
) -> None:
    await record(database, *[a_row(number, "alice", "bob") for number in (1, 2)])
    batch = [a_settlement(number, tx_id="batch:trade-1:1") for number in (1, 2)]
    async with database.writing() as tx:
        await record_settlements(tx, [a_settlement(1, attempts=1)])
        assert not await name_settlements(tx, batch)
        assert await name_settlements(tx, [batch[0]._replace(attempts=1), batch[1]])


async def test_of_many_new_trades_half_are_those_that_expire_first(database: Database) -> None:
    rows = [a_row(number, "alice", "bob") for number in range(1, 41)]
    await record(database, *rows)
    expiring = {
        rows[30].trade.taker_order_id: 900,
        rows[35].trade.fills[0].maker_order_id: 800,
        rows[36].trade.taker_order_id: 950,
        rows[37].trade.fills[0].maker_order_id: 700,
        rows[37].trade.taker_order_id: 990,
    }
    async with database.writing() as tx:
        signed = [
            an_order(number, a_buy("alice", salt=str(number), expiration_s=expiration_s))
            for number, expiration_s in enumerate(expiring.values())
        ]
        await record_orders(
            tx, [row._replace(order_id=key) for row, key in zip(signed, expiring, strict=True)]
        )

    async def due(limit: int, batched_max: int = 0) -> list[int]:
        async with database.reading() as tx:
            found = await load_due_settlements(tx, NOW_MS, limit, batched_max=batched_max)
        return [int(each.trade_id.removeprefix("trade-")) for each in found]

    assert await due(6) == [1, 38, 2, 36, 3, 31]
    assert await due(4, 10) == [1, 38, 2, 36, 3, 31, 4, 37, 5, 6]
    assert await due(41, 41) == list(range(1, 41))


async def test_the_trades_of_orders_are_found_as_taker_and_maker(database: Database) -> None:
    await record(database, a_row(2, "alice", "bob"), a_row(1, "carol", "bob"))
    ids = [a_word("taker order 1"), a_word("order of bob 2"), a_word("nothing")]
    async with database.reading() as tx:
        assert await load_trade_ids(tx, ids) == {
            a_word("taker order 1"): ["trade-1"],
            a_word("order of bob 2"): ["trade-2"],
        }
        assert await load_trade_ids(tx, []) == {}


async def test_an_orders_trades_are_sorted_by_time(database: Database) -> None:
    shared = a_fill("bob", "shared")
    rows = [
        row._replace(trade=_with(row.trade, shared), fill_tokens=(NO,))
        for row in (a_row(3), a_row(1), a_row(2))
    ]
    await record(database, *rows)
    async with database.reading() as tx:
        assert await load_trade_ids(tx, [a_word("shared")]) == {
            a_word("shared"): ["trade-1", "trade-2", "trade-3"]
        }


def _with(trade: Trade, fill: Fill) -> Trade:

    return msgspec.structs.replace(trade, fills=(fill,))


async def test_the_latest_quote_of_a_market_replaces_the_one_before(database: Database) -> None:
    later = QUOTE._replace(last_price_ticks=41, last_side="BUY", volume_units=5)
    other = QUOTE._replace(condition_id=a_word("other"))
    async with database.writing() as tx:
        await record_quotes(tx, [QUOTE, other])
        await record_quotes(tx, [later])
    async with database.reading() as tx:
        assert await load_quotes(tx) == {a_word("market"): later, a_word("other"): other}


async def test_each_reader_has_its_own_last_sequence(database: Database) -> None:
    async with database.writing() as tx:
        assert await load_sequence(tx, "one") == 0
        assert await advance_sequence(tx, "one", 0, 5)
        assert await advance_sequence(tx, "one", 5, 9)
        assert await advance_sequence(tx, "other", 0, 2)
    async with database.reading() as tx:
        assert (await load_sequence(tx, "one"), await load_sequence(tx, "other")) == (9, 2)


@pytest.mark.parametrize("was", [0, 4, 6])
async def test_a_sequence_that_another_writer_moved_is_not_advanced(
    database: Database, was: int
) -> None:
    async with database.writing() as tx:
        await advance_sequence(tx, "one", 0, 5)
        assert not await advance_sequence(tx, "one", was, 9)
        assert await load_sequence(tx, "one") == 5
