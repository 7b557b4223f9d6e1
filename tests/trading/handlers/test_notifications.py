from typing import Any

import pytest
import sqlalchemy as sa
from tests.rigs.rows import Rows
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import (
    EXCHANGE,
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_sell,
    a_settlement,
    a_word,
    an_address,
    an_asset,
    an_observation,
)

from foretell.domain.exchange.commands import AllowanceSeen, BarWallet, ResolveMarket, SplitTrade
from foretell.domain.exchange.settlement import Settlement
from foretell.domain.exchange.trade import TradeStatus
from foretell.store.outbox.settlements import record_settlements
from foretell.store.tables import acknowledged_times, acknowledgements, orders
from foretell.store.tables.trading import CLOSED_UNASKED
from foretell.trading.handlers.notifications import KEPT_MS, LISTED_MAX

pytestmark = pytest.mark.anyio

MARKET = str(a_word("market"))


async def notes(trader: Trader) -> list[Any]:
    found: list[Any] = await trader.get("/notifications")
    return found


async def drop(trader: Trader, *ids: str) -> Any:
    query = {"ids": ",".join(ids)} if ids else None
    answer = await trader.send("DELETE", "/notifications", query=query)
    assert answer.status_code == 200, answer.text
    trader.rig.clock.move(1000)
    return answer.json()


async def match(alice: Trader, bob: Trader, salt: str = "1") -> str:
    """Have alice buy from bob, and return the trade."""
    await bob.placed(a_sell("bob", price_ticks=40, salt=salt))
    placed = await alice.placed(a_buy("alice", price_ticks=40, salt=salt))
    (trade_id,) = placed["tradeIDs"]
    return str(trade_id)


async def test_taker_and_maker_are_notified_of_a_fill_once(alice: Trader, bob: Trader) -> None:
    trade_id = await match(alice, bob)
    (taken,), (made,) = await notes(alice), await notes(bob)
    assert (taken["type"], made["type"]) == (2, 2)
    assert (taken["owner"], made["owner"]) == (alice.key_id, bob.key_id)
    assert taken["timestamp"] == NOW_S
    payload = taken["payload"]
    assert payload["trade_id"] == made["payload"]["trade_id"] == trade_id
    assert (payload["side"], payload["price"]) == ("BUY", "0.4")
    sizes = [payload[name] for name in ("original_size", "matched_size", "remaining_size")]
    assert sizes == ["10", "10", "0"]
    assert (payload["asset_id"], payload["outcome"]) == (an_asset(is_yes=True), "Yes")
    assert (payload["outcome_index"], payload["type"]) == (0, "GTC")
    assert payload["market"] == payload["condition_id"] == MARKET


async def test_an_id_stays_the_same_while_a_trade_settles(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    trade_id = await match(alice, bob)
    (before,) = await notes(alice)
    for status in (TradeStatus.MINED, TradeStatus.CONFIRMED):
        await rig.submit(a_settlement(trade_id, status, a_word("tx")))
    (after,) = await notes(alice)
    assert after["id"] == before["id"]
    assert after["payload"]["transaction_hash"] == a_word("tx")


async def test_a_trade_that_splits_is_no_second_fill(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    first = await rig.rest(a_sell("bob", price_ticks=40, size_units=5 * TOKEN))
    await rig.rest(a_sell("carol", price_ticks=40, size_units=5 * TOKEN))
    (trade_id,) = (await alice.placed(a_buy("alice", price_ticks=40)))["tradeIDs"]
    before = await notes(alice), await notes(bob)
    assert (len(before[0]), len(before[1])) == (1, 1)
    await rig.submit(SplitTrade(NOW_MS, trade_id, ((first,),), ()))
    after = await notes(alice), await notes(bob)
    assert [[note["id"] for note in each] for each in after] == [
        [note["id"] for note in each] for each in before
    ]
    assert after[0][0]["payload"]["matched_size"] == "10"


async def test_what_was_acknowledged_is_not_returned_again(alice: Trader, bob: Trader) -> None:
    await match(alice, bob)
    (note,) = await notes(alice)
    assert await drop(alice, "1-other", note["id"]) == {"deleted": [note["id"]]}
    assert await notes(alice) == []
    assert await drop(alice, note["id"]) == {"deleted": []}
    assert len(await notes(bob)) == 1
    await match(alice, bob, "2")
    assert len(await notes(alice)) == 1


async def test_without_ids_all_are_acknowledged(alice: Trader, bob: Trader) -> None:
    for salt in ("1", "2"):
        await match(alice, bob, salt)
    assert len((await drop(alice))["deleted"]) == 2
    assert await notes(alice) == []


async def test_clients_of_the_other_dialect_expect_ok(rig: TradingRig) -> None:
    assert await drop(await rig.trader("alice", prefix="POLY_")) == "OK"


async def test_a_failed_settlement_is_another_notification(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    trade_id = await match(alice, bob)
    await drop(alice)
    rig.clock.move(5_000)
    async with rig.context.database.writing() as tx:
        await record_settlements(tx, [Settlement(trade_id, failure="InvalidNonce")])
    await rig.submit(a_settlement(trade_id, TradeStatus.FAILED, ""))
    for trader, kinds in ((alice, {8}), (bob, {2, 8})):
        found = await notes(trader)
        assert {note["type"] for note in found} == kinds
        assert {note["payload"]["trade_id"] for note in found} == {trade_id}
        failures = [note["payload"] for note in found if note["type"] == 8]
        assert [(each["err_msg"], each["code"]) for each in failures] == [
            ("InvalidNonce", "invalid_nonce")
        ]


async def test_an_order_that_left_the_book_without_a_request_is_published(
    rig: TradingRig, alice: Trader
) -> None:
    """One that its account canceled is not: that request was answered."""
    await alice.placed(a_buy("alice", salt="1"))
    await alice.send("DELETE", "/cancel-all")
    rested = (await alice.placed(a_buy("alice", salt="2")))["orderID"]
    gone = AllowanceSeen(an_address("alice"), EXCHANGE, is_collateral=True, units=0)
    await rig.submit(an_observation(allowances=[gone]))
    (note,) = await notes(alice)
    assert (note["type"], note["payload"]["order_id"]) == (1, rested)
    assert (note["payload"]["close_reason"], note["owner"]) == ("underfunded", alice.key_id)


async def test_an_order_of_a_barred_wallet_is_published(rig: TradingRig, alice: Trader) -> None:
    rested = (await alice.placed(a_buy("alice")))["orderID"]
    await rig.submit(BarWallet(NOW_MS, an_address("alice"), is_barred=True, cause="it reverts"))
    (note,) = await notes(alice)
    assert (note["type"], note["payload"]["order_id"]) == (1, rested)
    assert note["payload"]["close_reason"] == "wallet_barred"


async def test_the_resolution_of_a_market_is_published_to_its_holders(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    async with rig.context.database.writing() as tx:
        rows = Rows(tx)
        await rows.hold("alice", "market", 5 * TOKEN, 2 * TOKEN)
        await rows.resolve("market", 1, 0)
    await rig.submit(ResolveMarket(NOW_MS, a_word("market")))
    (note,) = await notes(alice)
    assert (note["type"], note["timestamp"], note["owner"]) == (4, NOW_S, "")
    assert note["payload"]["asset_id"] == an_asset(is_yes=True)
    assert (note["payload"]["condition_id"], note["payload"]["outcome_index"]) == (MARKET, 0)
    assert await notes(bob) == []


async def test_notifications_are_bounded_in_number_and_age(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    for number in range(LISTED_MAX + 2):
        rig.clock.move(10)
        await match(alice, bob, str(number))
    found = await notes(alice)
    assert len(found) == len({note["id"] for note in found}) == LISTED_MAX
    oldest_first = sorted(found, key=lambda note: int(note["timestamp"]))
    assert [note["timestamp"] for note in found] == [
        note["timestamp"] for note in reversed(oldest_first)
    ]
    await drop(alice)
    assert await notes(alice) == []
    assert len(await notes(bob)) == LISTED_MAX
    rig.clock.move(KEPT_MS)
    assert await notes(bob) == []


async def test_the_oldest_acknowledgements_become_a_time_of_their_type(
    rig: TradingRig, alice: Trader, bob: Trader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foretell.trading.handlers.notifications.ACKNOWLEDGED_MAX", 2)
    for number in range(4):
        rig.clock.move(1000)
        await match(alice, bob, str(number))
    await drop(alice)
    async with rig.context.database.reading() as tx:
        kept = await tx.scalar(sa.select(sa.func.count()).select_from(acknowledgements))
        (time,) = await tx.all(sa.select(acknowledged_times))
    assert (kept, time.type, time.until_ms) == (2, 2, NOW_MS + 2_000)
    assert await notes(alice) == []


async def test_a_readonly_key_reads_notifications_and_acknowledges_none(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    await match(alice, bob)
    key = (await alice.send("POST", "/auth/readonly-api-key")).json()["apiKey"]
    headers = {"SERVICE_ADDRESS": alice.address, "SERVICE_READONLY_API_KEY": key}
    read = await rig.client.get("/notifications", headers=headers)
    assert read.json() == await notes(alice)
    refused = await rig.client.delete("/notifications", headers=headers)
    assert refused.json()["code"] == "readonly_key_refused"


async def test_closed_orders_are_found_by_their_index(rig: TradingRig) -> None:
    query = sa.select(orders).where(
        orders.c.signer == "0x", orders.c.updated_at_ms >= 0, CLOSED_UNASKED
    )
    text = str(query.compile(compile_kwargs={"literal_binds": True}))
    async with rig.context.database.reading() as tx:
        plan = await tx.all(sa.text(f"EXPLAIN QUERY PLAN {text}"))
    assert "ix_orders_closed_unasked" in str(plan)
