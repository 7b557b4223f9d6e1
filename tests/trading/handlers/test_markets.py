from typing import Any

import pytest
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.trading import TradingRig
from tests.rigs.values import NOW_MS, NOW_S, a_buy, a_sell, a_word, an_address, an_asset

from foretell.domain.exchange.commands import ResolveMarket
from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.creation.markets import record_event
from foretell.trading.handlers.markets import MARKETS_PER_PAGE

pytestmark = pytest.mark.anyio

YES = an_asset(is_yes=True)
NO = an_asset(is_yes=False)
LISTS = ["/markets", "/simplified-markets", "/sampling-markets", "/sampling-simplified-markets"]
FIELDS = {
    "enable_order_book": bool,
    "active": bool,
    "closed": bool,
    "archived": bool,
    "accepting_orders": bool,
    "accepting_order_timestamp": str,
    "minimum_order_size": int,
    "minimum_tick_size": float,
    "condition_id": str,
    "question_id": str,
    "question": str,
    "description": str,
    "market_slug": str,
    "end_date_iso": str,
    "game_start_time": type(None),
    "seconds_delay": int,
    "fpmm": str,
    "maker_base_fee": int,
    "taker_base_fee": int,
    "notifications_enabled": bool,
    "neg_risk": bool,
    "neg_risk_market_id": str,
    "neg_risk_request_id": str,
    "icon": str,
    "image": str,
    "rewards": dict,
    "is_50_50_outcome": bool,
    "tokens": list,
    "tags": list,
    "creator": str,
    "status": str,
    "market_id": int,
    "slug": str,
    "assets_ids": list,
    "outcomes": list,
    "event": dict,
}


async def get(rig: TradingRig, path: str, **query: Any) -> Any:
    response = await rig.client.get(path, params=query)
    assert response.status_code == 200, response.text
    return response.json()


async def resolve(rig: TradingRig, name: str, yes: int, no: int) -> None:
    async with rig.context.database.writing() as tx:
        await Rows(tx).resolve(name, yes, no)
    await rig.submit(ResolveMarket(NOW_MS, a_word(name)))


async def test_a_market_has_every_field_in_its_type(rig: TradingRig) -> None:
    market = await get(rig, f"/markets/{a_word('market')}")
    assert {name: type(value) for name, value in market.items()} == FIELDS
    assert market["condition_id"] == a_word("market")
    assert (market["minimum_order_size"], market["minimum_tick_size"]) == (5, 0.01)
    assert market["end_date_iso"] == "2027-01-16T08:00:00Z"
    assert market["icon"] == "http://blobs.test/blobs/icon-market"
    assert market["event"]["slug"] == "event-market"
    assert market["rewards"] == {"rates": None, "min_size": 0, "max_spread": 0}
    assert (await get(rig, "/markets"))["data"] == [market]


async def test_the_short_and_the_compact_market_agree_with_the_full_one(rig: TradingRig) -> None:
    (short,) = (await get(rig, "/simplified-markets"))["data"]
    market = await get(rig, f"/markets/{a_word('market')}")
    assert short.items() <= market.items()
    compact = await get(rig, f"/clob-markets/{a_word('market')}")
    assert compact["c"] == a_word("market")
    assert compact["t"] == [{"t": YES, "o": "Yes"}, {"t": NO, "o": "No"}]
    assert (compact["mts"], compact["mos"], compact["nr"], compact["ao"]) == (0.01, 5, False, True)
    assert (compact["fd"], compact["r"], compact["gst"]) == (None, None, None)


@pytest.mark.parametrize("token_id", [YES, NO])
async def test_a_token_leads_to_its_market(rig: TradingRig, token_id: str) -> None:
    found = await get(rig, f"/markets-by-token/{token_id}")
    assert found["condition_id"] == a_word("market")
    assert (found["primary_token_id"], found["secondary_token_id"]) == (YES, NO)


@pytest.mark.parametrize("path", ["/live-activity/events", "/markets/live-activity"])
async def test_a_markets_trades_are_public(rig: TradingRig, path: str) -> None:
    await rig.rest(a_buy("alice", price_ticks=40))
    assert await get(rig, f"{path}/{a_word('market')}") == []
    await rig.rest(a_buy("bob", price_ticks=60, is_yes=False))
    (trade,) = await get(rig, f"{path}/{a_word('market')}")
    assert trade == {
        "event_type": "trade",
        "market": {
            "condition_id": a_word("market"),
            "asset_id": NO,
            "question": "Will it market?",
            "icon": "http://blobs.test/blobs/icon-market",
            "slug": "will-it-market",
        },
        "user": {
            "address": checksum_address(an_address("bob")),
            "username": "",
            "profile_picture": "",
            "optimized_profile_picture": "",
            "pseudonym": "",
        },
        "side": "BUY",
        "size": "10",
        "fee_rate_bps": "0",
        "price": "0.6",
        "outcome": "No",
        "outcome_index": 1,
        "transaction_hash": "",
        "timestamp": str(NOW_S),
    }
    assert (await rig.client.get(f"{path}/{a_word('nothing')}")).status_code == 404


async def test_tokens_are_listed_at_the_price_of_the_book(rig: TradingRig) -> None:
    await rig.rest(a_buy("alice", price_ticks=40))
    await rig.rest(a_sell("bob", price_ticks=45))
    market = await get(rig, f"/markets/{a_word('market')}")
    assert market["tokens"] == [
        {"token_id": YES, "outcome": "Yes", "price": 0.425, "winner": False},
        {"token_id": NO, "outcome": "No", "price": 0.575, "winner": False},
    ]


@pytest.mark.parametrize(
    ("yes", "no", "prices", "winners"),
    [
        (1, 0, [1, 0], [True, False]),
        (0, 1, [0, 1], [False, True]),
        (1, 1, [0.5, 0.5], [False, False]),
    ],
)
async def test_a_resolved_market_names_its_winner(
    rig: TradingRig, yes: int, no: int, prices: list[float], winners: list[bool]
) -> None:
    await resolve(rig, "market", yes, no)
    market = await get(rig, f"/markets/{a_word('market')}")
    assert [token["price"] for token in market["tokens"]] == prices
    assert [token["winner"] for token in market["tokens"]] == winners
    assert (market["closed"], market["accepting_orders"]) == (True, False)
    assert (market["is_50_50_outcome"], market["status"]) == (yes == no, "resolved")
    assert (await get(rig, f"/clob-markets/{a_word('market')}"))["ao"] is False
    assert (await get(rig, f"/markets-by-token/{YES}"))["condition_id"] == a_word("market")


async def test_a_sampling_has_no_resolved_market(rig: TradingRig) -> None:
    await rig.open("other")
    await resolve(rig, "market", 1, 0)
    slugs = {path: [market["slug"] for market in (await get(rig, path))["data"]] for path in LISTS}
    assert slugs["/markets"] == slugs["/simplified-markets"] == ["will-it-market", "will-it-other"]
    assert slugs["/sampling-markets"] == ["will-it-other"]
    assert slugs["/sampling-simplified-markets"] == ["will-it-other"]


async def test_a_market_that_the_engine_has_not_opened_yet_is_listed(rig: TradingRig) -> None:
    row = a_market_row("rain", outcome_yes="Wet", outcome_no="Dry", icon="")
    async with rig.context.database.writing() as tx:
        await Rows(tx, numbers=rig.numbers).open(an_event_row("rain", row))
    market = await get(rig, f"/markets/{a_word('rain')}")
    assert [token["outcome"] for token in market["tokens"]] == ["Wet", "Dry"]
    assert [token["price"] for token in market["tokens"]] == [0.5, 0.5]
    assert market["icon"] == ""


@pytest.mark.parametrize("path", LISTS)
async def test_a_list_that_fits_a_page_ends_with_it(rig: TradingRig, path: str) -> None:
    await rig.open("other")
    page = await get(rig, path, next_cursor="MA==")
    assert (page["limit"], page["count"], page["next_cursor"]) == (1000, 2, "LTE=")
    assert (await get(rig, path, next_cursor="LTE="))["data"] == []


async def test_cursors_lead_through_all_markets_to_the_end(rig: TradingRig) -> None:
    rows = [a_market_row(f"m{number}") for number in range(MARKETS_PER_PAGE)]
    async with rig.context.database.writing() as tx:
        await record_event(tx, an_event_row("many", *rows), NOW_MS)
    first = await get(rig, "/simplified-markets")
    assert (first["count"], first["next_cursor"]) == (1000, "MTAwMA==")
    second = await get(rig, "/simplified-markets", next_cursor=first["next_cursor"])
    assert (second["count"], second["next_cursor"]) == (1, "LTE=")
    slugs = [market["slug"] for page in (first, second) for market in page["data"]]
    assert slugs == ["will-it-market", *(row.slug for row in rows)]


@pytest.mark.parametrize("path", LISTS)
async def test_an_unknown_cursor_is_refused(rig: TradingRig, path: str) -> None:
    response = await rig.client.get(path, params={"next_cursor": "x"})
    assert (response.status_code, response.json()["error"]) == (400, "Invalid payload")


@pytest.mark.parametrize("path", ["/markets", "/clob-markets"])
@pytest.mark.parametrize(
    ("condition_id", "status", "words"),
    [("0x12", 400, "Invalid market"), (a_word("nothing"), 404, "market not found")],
)
async def test_an_unknown_market_is_not_found(
    rig: TradingRig, path: str, condition_id: str, status: int, words: str
) -> None:
    response = await rig.client.get(f"{path}/{condition_id}")
    assert (response.status_code, response.json()["error"]) == (status, words)


async def test_a_token_of_no_market_is_not_found(rig: TradingRig) -> None:
    assert (await rig.client.get("/markets-by-token/12")).status_code == 404
    assert (await rig.client.get(f"/markets-by-token/{YES}0")).status_code == 404
