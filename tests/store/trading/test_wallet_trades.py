"""Trades that wallets took part in."""

import pytest
from tests.rigs.values import NOW_S, a_word, an_address, an_asset
from tests.store.trading.test_trades import a_row, of_two_shards, record

from foretell.store.database import Database
from foretell.store.trading.wallet_trades import TradeFilter, load_wallet_trades

pytestmark = pytest.mark.anyio

NO = an_asset(is_yes=False)


async def found(
    database: Database, wallets: list[str], wanted: TradeFilter | None = None, **page: int
) -> list[int]:
    async with database.reading() as tx:
        rows = await load_wallet_trades(
            tx,
            [an_address(name) for name in wallets],
            wanted or TradeFilter(),
            page.get("offset", 0),
            page.get("limit", 10),
        )
    return [row.sequence for row in rows]


async def test_a_wallets_trades_are_those_it_took_or_made(database: Database) -> None:
    await record(
        database, a_row(1, "alice", "bob"), a_row(2, "bob", "carol"), a_row(3, "carol", "dora")
    )
    assert await found(database, ["alice"]) == [1]
    assert await found(database, ["bob"]) == [2, 1]
    assert await found(database, ["alice", "carol"]) == [3, 2, 1]
    assert await found(database, ["nobody"]) == []
    assert [await found(database, ["carol"], offset=n, limit=1) for n in (0, 1, 2)] == [
        [3],
        [2],
        [],
    ]


@pytest.mark.parametrize(
    ("wanted", "sequences"),
    [
        (TradeFilter(trade_id="trade-2"), [2]),
        (TradeFilter(condition_id=a_word("other")), [3]),
        (TradeFilter(token_id=NO), [3]),
        (TradeFilter(before_s=NOW_S + 2), [1]),
        (TradeFilter(after_s=NOW_S + 2), [3, 2]),
        (TradeFilter(taker=an_address("alice")), [3, 1]),
        (TradeFilter(maker=an_address("alice")), [2]),
        (TradeFilter(maker=an_address("alice"), after_s=NOW_S + 3), []),
    ],
)
async def test_trades_are_filtered(
    database: Database, wanted: TradeFilter, sequences: list[int]
) -> None:
    await record(
        database,
        a_row(1, "alice", "bob"),
        a_row(2, "bob", "alice"),
        a_row(3, "alice", "carol", market="other", token_id=NO),
    )
    assert await found(database, ["alice"], wanted) == sequences


async def test_a_trade_that_a_wallet_made_twice_and_took_is_listed_once(database: Database) -> None:
    await record(database, a_row(1, "alice", "alice", "bob"), a_row(2, "carol", "bob", "alice"))
    assert await found(database, ["alice", "bob"]) == [2, 1]
    assert [await found(database, ["alice", "bob"], offset=n, limit=1) for n in (0, 1, 2)] == [
        [2],
        [1],
        [],
    ]
    assert await found(database, []) == []


async def test_trades_of_several_shards_are_paged_by_time(database: Database) -> None:
    rows = of_two_shards()
    await record(database, *rows[::2], *rows[1::2])
    pages = [await found(database, ["alice"], offset=n, limit=2) for n in (0, 2, 4)]
    assert [sequence for page in pages for sequence in page] == [12, 4, 10, 2, 8, 0]
