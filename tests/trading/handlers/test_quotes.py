import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.rigs.trading import Trader, TradingRig, a_rig
from tests.rigs.values import NOW_MS, TOKEN, a_buy, a_sell, a_word, an_asset, some_rules

from foretell.domain.exchange.commands import ResolveMarket
from foretell.edge.codec import BODY_BYTES_MAX
from foretell.trading.handlers import quotes

pytestmark = pytest.mark.anyio

YES = an_asset(is_yes=True)
NO = an_asset(is_yes=False)
NO_BOOK = "No orderbook exists for the requested token id"
NOT_A_TOKEN = [None, "", "0x12", "yes", "-1", "1.5", "9" * 79, "\u0663"]

ROUTES = [
    "/book",
    "/midpoint",
    "/spread",
    "/last-trade-price",
    "/tick-size",
    "/neg-risk",
    "/fee-rate",
]
BATCHES = ["/books", "/prices", "/midpoints", "/spreads", "/last-trades-prices"]


async def get(rig: TradingRig, path: str, **query: Any) -> Any:
    response = await rig.client.get(path, params=query)
    assert response.status_code == 200, response.text
    return response.json()


async def post(rig: TradingRig, path: str, body: object) -> Any:
    response = await rig.client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def quoted(rig: TradingRig) -> None:
    """Bids for yes at 0.30 and 0.40, asks at 0.45 and (as a bid for no) at 0.60."""
    await rig.rest(a_buy("alice", price_ticks=30, size_units=20 * TOKEN))
    await rig.rest(a_buy("alice", price_ticks=40, size_units=10 * TOKEN))
    await rig.rest(a_buy("alice", price_ticks=40, size_units=5 * TOKEN, salt="2"))
    await rig.rest(a_sell("bob", price_ticks=45, size_units=7_500_000))
    await rig.rest(a_buy("bob", price_ticks=40, size_units=8 * TOKEN, is_yes=False))


@pytest.mark.spec(4, 100, 118)
async def test_a_book_has_both_tokens_orders_and_the_best_price_last(rig: TradingRig) -> None:
    await quoted(rig)
    book = await get(rig, "/book", token_id=YES)
    assert list(book) == [
        "market",
        "asset_id",
        "timestamp",
        "hash",
        "bids",
        "asks",
        "min_order_size",
        "tick_size",
        "neg_risk",
        "last_trade_price",
    ]
    assert book["bids"] == [{"price": "0.3", "size": "20"}, {"price": "0.4", "size": "15"}]
    assert book["asks"] == [{"price": "0.6", "size": "8"}, {"price": "0.45", "size": "7.5"}]
    assert (book["market"], book["asset_id"]) == (a_word("market"), YES)
    assert book["timestamp"] == str(NOW_MS)
    assert (book["min_order_size"], book["tick_size"]) == ("5", "0.01")
    assert (book["neg_risk"], book["last_trade_price"]) == (False, "")


async def test_the_other_tokens_book_is_the_mirror(rig: TradingRig) -> None:
    await quoted(rig)
    book = await get(rig, "/book", token_id=NO)
    assert book["bids"] == [{"price": "0.4", "size": "8"}, {"price": "0.55", "size": "7.5"}]
    assert book["asks"] == [{"price": "0.7", "size": "20"}, {"price": "0.6", "size": "15"}]


async def test_the_hash_is_of_the_book_with_an_empty_hash(rig: TradingRig) -> None:
    await quoted(rig)
    book = await get(rig, "/book", token_id=YES)
    compact = json.dumps(book | {"hash": ""}, separators=(",", ":"))
    assert book["hash"] == hashlib.sha1(compact.encode()).hexdigest()


async def test_a_book_changes_with_every_order_cancel_and_trade(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    seen = [(await get(rig, "/book", token_id=YES))["hash"]]
    order_id = (await alice.placed(a_buy("alice", price_ticks=40)))["orderID"]
    seen.append((await get(rig, "/book", token_id=YES))["hash"])
    await bob.placed(a_sell("bob", price_ticks=40, size_units=5 * TOKEN))
    book = await get(rig, "/book", token_id=YES)
    assert book["bids"] == [{"price": "0.4", "size": "5"}]
    assert book["last_trade_price"] == "0.4"
    assert (await get(rig, "/book", token_id=NO))["last_trade_price"] == "0.6"
    seen.append(book["hash"])
    await alice.send("DELETE", "/order", {"orderID": order_id})
    book = await get(rig, "/book", token_id=YES)
    assert book["bids"] == []
    seen.append(book["hash"])
    assert len(set(seen)) == 4


async def test_an_order_that_a_crash_could_undo_is_not_shown(rig: TradingRig) -> None:
    await quoted(rig)
    before = await get(rig, "/book", token_id=YES)
    placing = rig.rest(a_buy("carol", price_ticks=44))
    placing.send(None)
    assert len(rig.host.engine.state.live_orders) == 6
    assert await get(rig, "/book", token_id=YES) == before
    placing.close()


async def test_an_unchanged_book_is_not_encoded_again(rig: TradingRig) -> None:
    await quoted(rig)
    books = rig.context.books
    market, _ = books.find(YES)
    assert market.book(is_yes=True).raw is market.book(is_yes=True).raw


@pytest.mark.parametrize("path", ROUTES)
async def test_a_token_that_trades_has_an_answer_without_any_header(
    rig: TradingRig, path: str
) -> None:
    await rig.rest(a_sell("alice"))
    await rig.rest(a_buy("bob"))
    assert (await rig.client.get(path, params={"token_id": YES})).status_code == 200
    headers = {"SERVICE_ADDRESS": "nobody", "SERVICE_SIGNATURE": "x"}
    again = await rig.client.get(path, params={"token_id": YES}, headers=headers)
    assert again.status_code == 200


@pytest.mark.parametrize("path", [*ROUTES, "/price"])
@pytest.mark.parametrize("token_id", NOT_A_TOKEN)
async def test_a_malformed_token_id_is_refused(
    rig: TradingRig, path: str, token_id: str | None
) -> None:
    query = {"side": "BUY"} | ({} if token_id is None else {"token_id": token_id})
    response = await rig.client.get(path, params=query)
    assert (response.status_code, response.json()["error"]) == (400, "Invalid token id")


@pytest.mark.parametrize("path", [*ROUTES, "/price"])
async def test_a_token_that_does_not_trade_has_no_book(rig: TradingRig, path: str) -> None:
    response = await rig.client.get(path, params={"token_id": "12", "side": "BUY"})
    assert (response.status_code, response.json()["error"]) == (404, NO_BOOK)


@pytest.mark.parametrize("path", [*ROUTES, "/price"])
async def test_a_token_of_a_resolved_market_has_no_book_any_more(
    rig: TradingRig, path: str
) -> None:
    await rig.submit(ResolveMarket(NOW_MS, a_word("market")))
    response = await rig.client.get(path, params={"token_id": YES, "side": "BUY"})
    assert (response.status_code, response.json()["error"]) == (404, NO_BOOK)


@pytest.mark.spec(100)
@pytest.mark.parametrize(
    ("token_id", "side", "price"),
    [(YES, "BUY", "0.45"), (YES, "sell", "0.4"), (NO, "buy", "0.6"), (NO, "SELL", "0.55")],
)
async def test_a_price_is_that_of_a_taker(
    rig: TradingRig, token_id: str, side: str, price: str
) -> None:
    await quoted(rig)
    assert await get(rig, "/price", token_id=token_id, side=side) == {"price": price}


@pytest.mark.parametrize(("side", "price"), [("BUY", "0.4"), ("SELL", "0.45")])
async def test_an_operator_may_configure_the_side_of_the_book(
    database_file: Path, tmp_path: Path, side: str, price: str
) -> None:
    async with a_rig(tmp_path / "journal", database_file, price_side="book") as rig:
        await rig.open("market", "alice", "bob")
        await quoted(rig)
        assert await get(rig, "/price", token_id=YES, side=side) == {"price": price}


@pytest.mark.parametrize("side", [None, "", "BOTH", "0"])
async def test_a_side_is_buy_or_sell(rig: TradingRig, side: str | None) -> None:
    query = {"token_id": YES} | ({} if side is None else {"side": side})
    response = await rig.client.get("/price", params=query)
    assert (response.status_code, response.json()["error"]) == (400, "Invalid side")


async def test_a_side_without_orders_has_no_price(rig: TradingRig) -> None:
    await rig.rest(a_buy("alice", price_ticks=40))
    response = await rig.client.get("/price", params={"token_id": YES, "side": "BUY"})
    assert (response.status_code, response.json()["code"]) == (404, "no_price")
    assert await post(rig, "/prices", [{"token_id": YES}]) == {YES: {"SELL": "0.4"}}


@pytest.mark.spec(100)
@pytest.mark.parametrize(
    ("bids", "asks", "mid", "spread"),
    [
        ([40], [45], "0.425", "0.05"),
        ([40], [41], "0.405", "0.01"),
        ([40], [], "0.7", "0.6"),
        ([], [45], "0.225", "0.45"),
        ([], [], "0.5", "1"),
    ],
)
async def test_midpoint_and_spread_follow_from_the_best_prices(
    rig: TradingRig, bids: list[int], asks: list[int], mid: str, spread: str
) -> None:
    for ticks in bids:
        await rig.rest(a_buy("alice", price_ticks=ticks))
    for ticks in asks:
        await rig.rest(a_sell("bob", price_ticks=ticks))
    assert await get(rig, "/midpoint", token_id=YES) == {"mid": mid}
    assert await get(rig, "/spread", token_id=YES) == {"spread": spread}
    assert await get(rig, "/spread", token_id=NO) == {"spread": spread}
    (other,) = (await post(rig, "/midpoints", [{"token_id": NO}])).values()
    assert float(mid) + float(other) == pytest.approx(1)


async def test_a_last_price_has_the_side_of_its_taker(rig: TradingRig) -> None:
    await rig.rest(a_sell("alice", price_ticks=40))
    await rig.rest(a_buy("bob", price_ticks=40))
    assert await get(rig, "/last-trade-price", token_id=YES) == {"price": "0.4", "side": "BUY"}
    assert await get(rig, "/last-trade-price", token_id=NO) == {"price": "0.6", "side": "SELL"}


async def test_a_mint_has_a_last_price_of_both_tokens(rig: TradingRig) -> None:
    await rig.rest(a_buy("alice", price_ticks=40))
    await rig.rest(a_buy("bob", price_ticks=60, is_yes=False))
    assert await get(rig, "/last-trade-price", token_id=YES) == {"price": "0.4", "side": "SELL"}
    assert await get(rig, "/last-trade-price", token_id=NO) == {"price": "0.6", "side": "BUY"}


async def test_a_token_has_no_last_price_before_its_first_trade(rig: TradingRig) -> None:
    response = await rig.client.get("/last-trade-price", params={"token_id": YES})
    assert response.status_code == 404
    assert response.json()["error"] == "No trades found for the requested token id"
    assert await post(rig, "/last-trades-prices", [{"token_id": YES}]) == []


@pytest.mark.parametrize(
    ("ticks_per_one", "text"),
    [
        (10, "0.1"),
        (100, "0.01"),
        (200, "0.005"),
        (400, "0.0025"),
        (1000, "0.001"),
        (10_000, "0.0001"),
    ],
)
async def test_a_tick_size_is_a_number_that_clients_know(
    rig: TradingRig, ticks_per_one: int, text: str
) -> None:
    await rig.open("fine", rules=some_rules(ticks_per_one))
    token_id = an_asset(is_yes=True, market="fine")
    response = await rig.client.get("/tick-size", params={"token_id": token_id})
    assert response.text == f'{{"minimum_tick_size":{text}}}'
    assert str(response.json()["minimum_tick_size"]) == text
    assert (await rig.client.get(f"/tick-size/{token_id}")).text == response.text


async def test_a_token_has_a_fee_and_a_neg_risk_flag(rig: TradingRig) -> None:
    assert await get(rig, f"/neg-risk/{YES}") == {"neg_risk": False}
    fee = await get(rig, f"/fee-rate/{YES}")
    assert fee["base_fee"] == 0
    assert set(fee["fd"]) == {"r", "e", "to"}
    assert fee["fee_schedule"]["source"] == "local"


async def test_a_market_of_the_other_exchange_is_neg_risk(rig: TradingRig) -> None:
    await rig.open("unique", exchange="0x" + "e2" * 20)
    token_id = an_asset(is_yes=True, market="unique")
    assert await get(rig, "/neg-risk", token_id=token_id) == {"neg_risk": True}
    assert (await get(rig, "/book", token_id=token_id))["neg_risk"] is True


@pytest.mark.spec(100)
async def test_a_batch_answers_for_every_token_that_trades(rig: TradingRig) -> None:
    await quoted(rig)
    await rig.rest(a_sell("carol", price_ticks=40, size_units=5 * TOKEN))
    wanted = [{"token_id": YES}, {"token_id": "12"}, {"token_id": NO, "side": "BUY"}]
    books = await post(rig, "/books", wanted)
    assert [book["asset_id"] for book in books] == [YES, NO]
    assert books[0] == await get(rig, "/book", token_id=YES)
    assert await post(rig, "/prices", wanted) == {
        YES: {"BUY": "0.45", "SELL": "0.4"},
        NO: {"BUY": "0.6"},
    }
    assert await post(rig, "/midpoints", wanted) == {YES: "0.425", NO: "0.575"}
    assert await post(rig, "/spreads", wanted) == {YES: "0.05", NO: "0.05"}
    assert await post(rig, "/last-trades-prices", wanted) == [
        {"token_id": YES, "price": "0.4", "side": "SELL"},
        {"token_id": NO, "price": "0.6", "side": "BUY"},
    ]


async def test_a_token_that_a_batch_names_twice_is_answered_once(rig: TradingRig) -> None:
    """A finding: a small body that named the deepest token 500 times had an answer of many megabytes."""
    await quoted(rig)
    await rig.rest(a_sell("carol", price_ticks=40, size_units=5 * TOKEN))
    wanted = [{"token_id": each} for each in (YES, NO, YES, YES)]
    books = await post(rig, "/books", wanted)
    assert [book["asset_id"] for book in books] == [YES, NO]
    last_trades = await post(rig, "/last-trades-prices", wanted)
    assert [each["token_id"] for each in last_trades] == [YES, NO]
    for path in ("/prices", "/midpoints", "/spreads"):
        assert list(await post(rig, path, wanted)) == [YES, NO]


async def test_the_books_of_a_batch_have_a_bound_in_bytes(
    rig: TradingRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await quoted(rig)
    sizes = [
        len((await rig.client.get("/book", params={"token_id": each})).content)
        for each in (YES, NO)
    ]
    wanted = [{"token_id": YES}, {"token_id": NO}]
    monkeypatch.setattr(quotes, "BOOKS_BYTES_MAX", sum(sizes))
    assert len(await post(rig, "/books", wanted)) == 2
    monkeypatch.setattr(quotes, "BOOKS_BYTES_MAX", sum(sizes) - 1)
    response = await rig.client.post("/books", json=wanted)
    assert (response.status_code, response.json()["code"]) == (400, "books_too_large")
    assert response.json()["error"] == "Payload exceeds the limit"


async def test_both_sides_of_a_token_may_be_requested_separately(rig: TradingRig) -> None:
    await quoted(rig)
    wanted = [{"token_id": YES, "side": "BUY"}, {"token_id": YES, "side": "SELL"}]
    assert await post(rig, "/prices", wanted) == {YES: {"BUY": "0.45", "SELL": "0.4"}}


@pytest.mark.parametrize("path", BATCHES)
@pytest.mark.parametrize("raw", [b"", b"{}", b"[1]", b'[{"token_id": 5}]', b"[{}]", b"\xff"])
async def test_a_malformed_batch_is_refused(rig: TradingRig, path: str, raw: bytes) -> None:
    response = await rig.client.post(path, content=raw)
    assert (response.status_code, response.json()["error"]) == (400, "Invalid payload")


@pytest.mark.parametrize("path", BATCHES)
async def test_a_batch_is_of_at_most_five_hundred_tokens(rig: TradingRig, path: str) -> None:
    wanted = [{"token_id": YES}] * 501
    response = await rig.client.post(path, json=wanted)
    assert (response.status_code, response.json()["error"]) == (400, "Payload exceeds the limit")
    assert (await rig.client.post(path, json=wanted[1:])).status_code == 200


async def test_a_batch_names_tokens_as_decimals(rig: TradingRig) -> None:
    response = await rig.client.post("/books", json=[{"token_id": "0x12"}])
    assert (response.status_code, response.json()["error"]) == (400, "Invalid token id")


async def test_a_body_that_is_too_large_is_refused(rig: TradingRig) -> None:
    response = await rig.client.post("/books", content=b" " * (BODY_BYTES_MAX + 1))
    assert (response.status_code, response.json()["error"]) == (400, "Payload exceeds the limit")


async def test_unknown_parameters_are_refused_for_strict_clients(rig: TradingRig) -> None:
    query = {"token_id": YES, "tokenid": "x"}
    assert (await rig.client.get("/midpoint", params=query)).status_code == 200
    response = await rig.client.get("/midpoint", params=query | {"strict": "true"})
    assert (response.status_code, response.json()["code"]) == (400, "unknown_parameter")
