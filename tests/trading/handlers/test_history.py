import asyncio
from typing import Any

import pytest
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import (
    EXCHANGE,
    NOW_S,
    TOKEN,
    a_buy,
    a_sell,
    a_settlement,
    a_signed_order,
    a_spending,
    a_word,
    an_address,
    an_asset,
    an_observation,
    an_order_id,
    some_funds,
)

from foretell.domain.errors.storage import StoreUnavailable
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen, ResolveMarket
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import SignatureType
from foretell.domain.exchange.settlement import Settlement
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.outbox.settlements import record_settlements
from foretell.trading.handlers.history import ENTRIES_PER_PAGE
from foretell.trading.wire.orders import ZERO_UUID

pytestmark = pytest.mark.anyio

YES = an_asset(is_yes=True)
NO = an_asset(is_yes=False)
LISTS = ["/data/orders", "/data/trades", "/trades"]


async def ids(trader: Trader, path: str, **query: Any) -> list[str]:
    return [entry["id"] for entry in (await trader.get(path, **query))["data"]]


async def test_a_live_order_is_listed_as_it_was_placed(alice: Trader) -> None:
    order = a_buy("alice", price_ticks=40, expiration_s=NOW_S + 600)
    await alice.placed(order, "GTD")
    assert await alice.get("/data/orders") == {
        "data": [
            {
                "id": an_order_id(order),
                "status": "LIVE",
                "owner": alice.key_id,
                "maker_address": checksum_address(alice.address),
                "market": a_word("market"),
                "asset_id": YES,
                "side": "BUY",
                "original_size": "10",
                "size_matched": "0",
                "price": "0.4",
                "associate_trades": [],
                "outcome": "Yes",
                "created_at": NOW_S,
                "expiration": str(NOW_S + 600),
                "order_type": "GTD",
                "close_reason": None,
            }
        ],
        "next_cursor": "LTE=",
        "limit": 100,
        "count": 1,
    }
    assert (
        await alice.get(f"/data/order/{an_order_id(order)}")
        == (await alice.get("/data/orders"))["data"][0]
    )


async def test_only_orders_in_the_books_are_listed_the_newest_first(alice: Trader) -> None:
    placed = [(await alice.placed(a_buy("alice", price_ticks=t)))["orderID"] for t in (20, 30, 40)]
    await alice.send("DELETE", "/order", {"orderID": placed[1]})
    assert await ids(alice, "/data/orders") == [placed[2], placed[0]]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, {"yes", "no", "other"}),
        ({"market": a_word("market")}, {"yes", "no"}),
        ({"market": a_word("other")}, {"other"}),
        ({"asset_id": NO}, {"no"}),
        ({"asset_id": "12"}, set()),
        ({"id": an_order_id(a_buy("alice", price_ticks=20))}, {"yes"}),
        ({"market": a_word("other"), "asset_id": NO}, set()),
    ],
)
async def test_orders_are_filtered(
    rig: TradingRig, alice: Trader, query: dict[str, str], names: set[str]
) -> None:
    await rig.open("other", "alice")
    orders = {
        "yes": a_buy("alice", price_ticks=20),
        "no": a_buy("alice", price_ticks=20, is_yes=False),
        "other": a_buy("alice", market="other"),
    }
    placed = {name: (await alice.placed(order))["orderID"] for name, order in orders.items()}
    assert set(await ids(alice, "/data/orders", **query)) == {placed[name] for name in names}


@pytest.mark.parametrize(
    "query",
    [
        {"id": "0x12"},
        {"market": "x"},
        {"asset_id": "0x12"},
        {"asset_id": "-1"},
        {"asset_id": "1" * 79},
    ],
)
async def test_a_malformed_filter_of_orders_is_refused(
    alice: Trader, query: dict[str, str]
) -> None:
    response = await alice.send("GET", "/data/orders", query=query)
    assert (response.status_code, response.json()["error"]) == (400, "invalid order params payload")


async def test_cursors_lead_through_all_orders(rig: TradingRig, alice: Trader) -> None:
    await rig.submit(some_funds("alice", units=10**9 * TOKEN))
    placed = [
        await rig.rest(a_buy("alice", price_ticks=20, salt=str(number)))
        for number in range(ENTRIES_PER_PAGE + 1)
    ]
    first = await alice.get("/data/orders", next_cursor="MA==")
    second = await alice.get("/data/orders", next_cursor=first["next_cursor"])
    assert (first["count"], second["count"], second["next_cursor"]) == (100, 1, "LTE=")
    seen = [order["id"] for page in (first, second) for order in page["data"]]
    assert seen == placed[::-1]


async def test_an_order_stays_readable_with_its_close_reason(alice: Trader, bob: Trader) -> None:
    canceled = (await alice.placed(a_buy("alice", price_ticks=20)))["orderID"]
    await alice.send("DELETE", "/order", {"orderID": canceled})
    filled = (await alice.placed(a_buy("alice", price_ticks=40)))["orderID"]
    (trade_id,) = (await bob.placed(a_sell("bob", price_ticks=40)))["tradeIDs"]
    gone = await alice.get(f"/data/order/{canceled}")
    done = await alice.get(f"/data/order/{filled.upper().replace('X', 'x')}")
    assert (gone["status"], gone["close_reason"]) == ("CANCELED", "canceled")
    assert (done["status"], done["close_reason"]) == ("MATCHED", "filled")
    assert (done["size_matched"], done["associate_trades"]) == ("10", [trade_id])


async def test_an_order_of_another_address_is_not_found(alice: Trader, bob: Trader) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    for unknown in (order_id, a_word("nothing"), "x"):
        response = await bob.send("GET", f"/data/order/{unknown}")
        assert (response.status_code, response.json()["error"]) == (404, "order not found")
    assert await ids(bob, "/data/orders") == []


@pytest.mark.spec(101)
async def test_a_trade_is_listed_for_its_taker(alice: Trader, bob: Trader) -> None:
    resting = a_sell("bob", price_ticks=40, size_units=4 * 10 * TOKEN)
    await bob.placed(resting)
    answer = await alice.placed(a_spending("alice", price_ticks=50, budget_units=10 * TOKEN), "FOK")
    (trade,) = (await alice.get("/trades"))["data"]
    assert trade == {
        "id": answer["tradeIDs"][0],
        "taker_order_id": answer["orderID"],
        "market": a_word("market"),
        "asset_id": YES,
        "side": "BUY",
        "size": "25",
        "fee_rate_bps": "0",
        "price": "0.4",
        "status": "MATCHED",
        "match_time": str(NOW_S),
        "last_update": str(NOW_S),
        "outcome": "Yes",
        "bucket_index": 0,
        "owner": alice.key_id,
        "maker_address": checksum_address(alice.address),
        "transaction_hash": "",
        "maker_orders": [
            {
                "order_id": an_order_id(resting),
                "owner": ZERO_UUID,
                "maker_address": checksum_address(bob.address),
                "matched_amount": "25",
                "price": "0.4",
                "fee_rate_bps": "0",
                "asset_id": YES,
                "outcome": "Yes",
                "outcome_index": 0,
                "side": "SELL",
                "match_type": "COMPLEMENTARY",
            }
        ],
        "trader_side": "TAKER",
        "type": "TRADE",
        "err_msg": None,
        "code": None,
    }


@pytest.mark.spec(101)
async def test_a_trade_is_listed_for_its_makers_too(alice: Trader, bob: Trader) -> None:
    await bob.placed(a_sell("bob", price_ticks=40))
    await alice.placed(a_buy("alice", price_ticks=40))
    (trade,) = (await bob.get("/data/trades"))["data"]
    assert (trade["trader_side"], trade["owner"]) == ("MAKER", bob.key_id)
    assert trade["maker_orders"][0]["owner"] == bob.key_id
    assert alice.key_id not in str(trade)


async def test_a_mint_lists_each_order_with_its_own_token(alice: Trader, bob: Trader) -> None:
    await bob.placed(a_buy("bob", price_ticks=60, is_yes=False))
    await alice.placed(a_buy("alice", price_ticks=40))
    (trade,) = (await alice.get("/data/trades"))["data"]
    (maker,) = trade["maker_orders"]
    assert (trade["asset_id"], trade["price"], trade["outcome"]) == (YES, "0.4", "Yes")
    assert (maker["asset_id"], maker["price"], maker["outcome"]) == (NO, "0.6", "No")
    assert (maker["side"], maker["match_type"], maker["outcome_index"]) == ("BUY", "MINT", 1)


async def test_a_trade_follows_its_settlement(rig: TradingRig, alice: Trader, bob: Trader) -> None:
    await bob.placed(a_sell("bob", price_ticks=40))
    (trade_id,) = (await alice.placed(a_buy("alice", price_ticks=40)))["tradeIDs"]
    seen = []
    for status, tx_hash in [
        (TradeStatus.RETRYING, ""),
        (TradeStatus.MINED, a_word("tx")),
        (TradeStatus.CONFIRMED, a_word("tx")),
    ]:
        rig.clock.move(1_000)
        await rig.submit(a_settlement(trade_id, status, tx_hash))
        (trade,) = (await alice.get("/data/trades", id=trade_id))["data"]
        seen.append((trade["status"], trade["transaction_hash"]))
    assert seen == [
        ("RETRYING", ""),
        ("MINED", a_word("tx")),
        ("CONFIRMED", a_word("tx")),
    ]


@pytest.mark.parametrize(
    ("failure", "message", "code"),
    [
        ("InsufficientAllowance", "InsufficientAllowance", "insufficient_allowance"),
        ("reverted in block 7", "the trade could not be settled on the chain", "settlement_failed"),
        (None, "the trade could not be settled on the chain", "settlement_failed"),
    ],
)
async def test_a_failed_trade_says_why(
    rig: TradingRig, alice: Trader, bob: Trader, failure: str | None, message: str, code: str
) -> None:
    await bob.placed(a_sell("bob", price_ticks=40))
    (trade_id,) = (await alice.placed(a_buy("alice", price_ticks=40)))["tradeIDs"]
    async with rig.context.database.writing() as tx:
        if failure is not None:
            await record_settlements(tx, [Settlement(trade_id, failure=failure, is_given_up=True)])
    await rig.submit(a_settlement(trade_id, TradeStatus.FAILED, ""))
    for reader in (alice, bob):
        (trade,) = (await reader.get("/data/trades"))["data"]
        assert (trade["status"], trade["err_msg"], trade["code"]) == ("FAILED", message, code)


async def test_a_taker_with_more_fills_than_a_call_settles_has_several_trades(
    rig: TradingRig, alice: Trader
) -> None:
    for number in range(21):
        maker = a_sell("bob", price_ticks=40, size_units=5 * TOKEN, salt=str(number))
        await rig.rest(maker)
    answer = await alice.placed(a_buy("alice", price_ticks=40, size_units=21 * 5 * TOKEN))
    trades = (await alice.get("/data/trades"))["data"]
    assert {trade["id"]: trade["bucket_index"] for trade in trades} == {
        answer["tradeIDs"][0]: 0,
        answer["tradeIDs"][1]: 1,
    }
    assert [
        len(trade["maker_orders"]) for trade in sorted(trades, key=lambda t: t["bucket_index"])
    ] == [20, 1]


async def test_a_safes_trades_are_its_owners(rig: TradingRig, alice: Trader) -> None:
    safe = rig.context.wallets.safe_of(alice.address)
    await rig.submit(
        an_observation(
            [BalanceSeen(safe, COLLATERAL, 100 * TOKEN)],
            [AllowanceSeen(safe, EXCHANGE, is_collateral=True, units=AMOUNT_UNITS_MAX)],
        )
    )
    await rig.rest(a_sell("bob", price_ticks=50))
    await alice.placed(a_signed_order("alice", maker=safe, signature_type=SignatureType.SAFE))
    (trade,) = (await alice.get("/data/trades"))["data"]
    assert (trade["trader_side"], trade["maker_address"]) == ("TAKER", checksum_address(safe))
    assert await ids(alice, "/data/trades", maker_address=safe) == [trade["id"]]
    assert await ids(alice, "/data/trades", maker_address=alice.address) == []
    assert await ids(alice, "/data/trades", maker_address=an_address("bob")) == []


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({}, [2, 1, 0]),
        ({"market": a_word("market")}, [1, 0]),
        ({"market": a_word("nothing")}, []),
        ({"asset_id": an_asset(is_yes=True, market="other")}, [2]),
        ({"after": NOW_S + 10}, [2, 1]),
        ({"before": NOW_S + 10}, [0]),
        ({"after": NOW_S + 10, "before": NOW_S + 20}, [1]),
        ({"id": "nothing"}, []),
        ({"taker": an_address("alice")}, [2, 1]),
        ({"taker": an_address("bob")}, [0]),
        ({"maker": an_address("alice")}, [0]),
        ({"maker": an_address("dora")}, []),
    ],
)
async def test_trades_are_filtered(
    rig: TradingRig, alice: Trader, bob: Trader, query: dict[str, Any], numbers: list[int]
) -> None:
    await rig.open("other", "alice", "bob")
    await alice.placed(a_sell("alice", price_ticks=40))
    placed = [await bob.placed(a_buy("bob", price_ticks=40))]
    for market in ("market", "other"):
        rig.clock.move(10_000)
        await bob.placed(a_sell("bob", price_ticks=50, market=market, salt="2"))
        placed.append(await alice.placed(a_buy("alice", price_ticks=50, market=market, salt="2")))
    trade_ids = [answer["tradeIDs"][0] for answer in placed]
    found = await ids(alice, "/data/trades", **query)
    assert found == [trade_ids[number] for number in numbers]


@pytest.mark.parametrize(
    "query",
    [
        {"market": "0x12"},
        {"asset_id": "x"},
        {"before": "now"},
        {"after": "-1"},
        {"maker_address": "alice"},
        {"taker": "0x"},
        {"maker": "1"},
    ],
)
async def test_a_malformed_filter_of_trades_is_refused(
    alice: Trader, query: dict[str, str]
) -> None:
    response = await alice.send("GET", "/data/trades", query=query)
    assert (response.status_code, response.json()["error"]) == (400, "Invalid trade params payload")


@pytest.mark.parametrize("path", LISTS)
async def test_an_unknown_cursor_is_refused(alice: Trader, path: str) -> None:
    response = await alice.send("GET", path, query={"next_cursor": "x"})
    assert (response.status_code, response.json()["error"]) == (400, "Invalid payload")


@pytest.mark.spec(101)
@pytest.mark.parametrize("path", [*LISTS, "/data/order/0x12", "/balance-allowance"])
async def test_without_credentials_nothing_is_returned(rig: TradingRig, path: str) -> None:
    response = await rig.client.get(path)
    assert (response.status_code, response.json()["error"]) == (401, "Unauthorized/Invalid api key")


async def test_a_trade_is_found_as_soon_as_its_order_was_answered(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    for number in range(20):
        await bob.placed(a_sell("bob", price_ticks=40, salt=str(number)))
        answer = await alice.placed(a_buy("alice", price_ticks=40, salt=str(number)))
        (trade,) = (await alice.get("/data/trades", id=answer["tradeIDs"][0]))["data"]
        assert trade["taker_order_id"] == answer["orderID"]
    assert rig.host.projection.sequence == rig.context.books.sequence


async def test_tables_that_stay_behind_are_not_read(rig: TradingRig) -> None:
    await rig.settle_tables()
    rig.host.engine.published_sequence += 1
    with pytest.raises(StoreUnavailable, match="too far behind"):
        await rig.host.wait_for_tables(within_s=0.01)
    waiting = asyncio.create_task(rig.host.wait_for_tables())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    rig.host.engine.published_sequence -= 1
    rig.host.projection.sequence += 1
    await waiting


async def test_orders_of_a_resolved_market_leave_with_its_reason(
    rig: TradingRig, alice: Trader
) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    await rig.submit(ResolveMarket(rig.clock.at_ms, a_word("market")))
    order = await alice.get(f"/data/order/{order_id}")
    assert (order["status"], order["close_reason"]) == ("CANCELED", "market_resolved")
