import json
from decimal import Decimal
from typing import Any

import pytest
from msgspec import UNSET
from tests.rigs.read_apis import BLOBS
from tests.rigs.values import NOW_MS, NOW_S, a_word, an_address

from foretell.discovery.render import render_event, render_market, render_tag
from foretell.domain.portfolio.positions import Payout
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.index.oracle_answers import Answer, AnswerStep
from foretell.store.queries.catalog import CatalogEvent, CatalogMarket, VolumeSums
from foretell.store.queries.tags import CatalogTag

VOLUMES = VolumeSums(5_000_000, 1_000_000, 2_000_000, 3_000_000, 4_000_000)


def an_event(**fields: Any) -> CatalogEvent:
    event = CatalogEvent(
        event_id=3,
        slug="rain",
        title="Rain",
        creator=an_address("creator"),
        market_mode="binary",
        main_category_slug="weather",
        rules="Look out of the window.",
        resolution_source=None,
        image="image-1",
        ends_at_ms=NOW_MS + 1000,
        created_at_ms=NOW_MS,
        updated_at_ms=NOW_MS + 5,
        volumes=VOLUMES,
        liquidity_units=7_500_000,
        locked_units=9,
        closed_at_s=None,
        is_neg_risk=False,
        neg_risk_market_id=None,
        evenness=0.25,
    )
    return event._replace(**fields)


def a_market(**fields: Any) -> CatalogMarket:
    market = CatalogMarket(
        market_id=4,
        event_id=3,
        condition_id=a_word("rain"),
        question_id=a_word("question"),
        slug="rain",
        question="Will it rain?",
        title="Rain",
        outcome_yes='Ja "so"',
        outcome_no="Não",
        token_yes="12",
        token_no="13",
        oracle=an_address("oracle"),
        resolution_type="dro_moov2",
        icon="",
        is_neg_risk=False,
        neg_risk_market_id=None,
        neg_risk_request_id=None,
        ticks_per_one=1000,
        size_units_min=5_000_000,
        fee_rate_bps=0,
        created_at_ms=NOW_MS,
        updated_at_ms=NOW_MS,
        volumes=VOLUMES,
        liquidity_units=2_250_000,
        closed_at_s=None,
        top=BookTop(1000, 401, 450, 7),
        payout=None,
        past_prices=(0.4, None, 0.5, None),
    )
    return market._replace(**fields)


def test_an_event_has_the_sums_of_its_markets() -> None:
    event = render_event(an_event(), BLOBS)
    assert (event.id, event.ticker, event.slug) == ("3", "rain", "rain")
    assert event.image == event.icon == f"{BLOBS}/blobs/image-1"
    assert [event.volume, event.volume24hr, event.volume1yr] == [Decimal(n) for n in (5, 1, 4)]
    assert (event.liquidity, event.open_interest) == (Decimal("7.5"), Decimal("0.000009"))
    assert event.competitive == Decimal("0.941176")
    assert (event.closed, event.closed_time) == (False, UNSET)
    assert event.updated_at == "2027-01-15T08:00:00.005Z"
    assert event.created_by == checksum_address(an_address("creator"))
    assert (event.markets, event.tags, event.resolution_source) == (UNSET, UNSET, "")


def test_a_closed_event_has_its_closing_time() -> None:
    event = render_event(an_event(closed_at_s=NOW_S, resolution_source="https://x"), BLOBS)
    assert (event.closed, event.closed_time) == (True, "2027-01-15T08:00:00Z")
    assert event.resolution_source == "https://x"


def test_lists_inside_a_market_are_json_in_a_string() -> None:
    market = render_market(a_market(), an_event(), BLOBS)
    assert market.outcomes == '["Ja \\"so\\"", "Não"]'
    assert json.loads(market.clob_token_ids) == ["12", "13"]
    assert market.outcome_prices == '["0.4255", "0.5745"]'
    assert market.uma_resolution_statuses == "[]"


def test_a_market_has_its_book_and_its_price_changes() -> None:
    market = render_market(a_market(), an_event(), BLOBS)
    assert (market.best_bid, market.best_ask) == (Decimal("0.401"), Decimal("0.45"))
    assert (market.spread, market.last_trade_price) == (Decimal("0.049"), Decimal("0.007"))
    assert (market.one_hour_price_change, market.one_day_price_change) == (
        Decimal("0.0255"),
        UNSET,
    )
    assert (market.one_week_price_change, market.one_month_price_change) == (
        Decimal("-0.0745"),
        UNSET,
    )
    assert market.order_price_min_tick_size == Decimal("0.001")
    assert market.order_min_size == Decimal(5)
    assert market.accepting_orders


@pytest.mark.parametrize(
    ("top", "prices"),
    [
        (BookTop(100, 10, 90, 42), '["0.5", "0.5"]'),
        (BookTop(100, 10, None, 42), '["0.42", "0.58"]'),
        (BookTop(100, 10, None, None), '["0.5", "0.5"]'),
        (None, '["0.5", "0.5"]'),
    ],
)
def test_a_market_is_listed_at_its_midpoint_else_at_its_last_trade(
    top: BookTop | None, prices: str
) -> None:
    assert render_market(a_market(top=top), an_event(), BLOBS).outcome_prices == prices


@pytest.mark.parametrize(
    ("top", "tick"),
    [(None, "0.01"), (BookTop(100, 3, 5, 4), "0.01"), (BookTop(1_000, 30, 50, 39), "0.001")],
)
def test_the_tick_is_the_book_s_after_the_first_quote(top: BookTop | None, tick: str) -> None:
    market = render_market(a_market(ticks_per_one=100, top=top), an_event(), BLOBS)
    assert market.order_price_min_tick_size == Decimal(tick)


def test_missing_prices_of_a_book_are_left_out() -> None:
    market = render_market(a_market(top=None), an_event(), BLOBS)
    assert (market.best_bid, market.best_ask, market.spread) == (UNSET, UNSET, UNSET)
    assert (market.last_trade_price, market.icon) == (UNSET, "")


@pytest.mark.parametrize(
    ("payout", "prices"),
    [
        (Payout(1, 0), '["1", "0"]'),
        (Payout(0, 1), '["0", "1"]'),
        (Payout(1, 1), '["0.5", "0.5"]'),
        (Payout(1, 2), '["0.333333", "0.666667"]'),
    ],
)
def test_a_resolved_market_is_listed_at_its_payout(payout: Payout, prices: str) -> None:
    resolved = a_market(payout=payout, closed_at_s=NOW_S, top=BookTop(100, None, None, 42))
    market = render_market(resolved, an_event(), BLOBS)
    assert market.outcome_prices == prices
    assert (market.closed, market.accepting_orders) == (True, False)
    assert (market.uma_resolution_status, market.uma_resolution_statuses) == (
        "resolved",
        '["resolved"]',
    )
    assert market.closed_time == "2027-01-15T08:00:00Z"


@pytest.mark.parametrize(
    ("steps", "payout", "status", "statuses"),
    [
        ((), None, "", "[]"),
        (("proposed",), None, "proposed", '["proposed"]'),
        (("proposed", "disputed"), None, "disputed", '["proposed", "disputed"]'),
        (("proposed",), Payout(1, 0), "resolved", '["proposed", "resolved"]'),
    ],
)
def test_a_market_has_the_status_of_its_resolution(
    steps: tuple[str, ...], payout: Payout | None, status: str, statuses: str
) -> None:
    answers = tuple(an_answer(AnswerStep(step), number) for number, step in enumerate(steps))
    market = render_market(a_market(answers=answers, payout=payout), an_event(), BLOBS)
    assert (market.uma_resolution_status, market.uma_resolution_statuses) == (status, statuses)


def an_answer(step: AnswerStep, at_s: int) -> Answer:
    account, word = an_address("ann"), a_word(f"answer {at_s}")
    return Answer(at_s, 0, 0, an_address("oracle"), a_word("asked"), step, account, "0", at_s, word)


def test_a_market_has_its_proposals_and_disputes_with_their_times() -> None:
    answers = (an_answer(AnswerStep.PROPOSED, 60), an_answer(AnswerStep.DISPUTED, 7_260))
    market = render_market(a_market(answers=answers), an_event(), BLOBS)
    steps = market.resolution_steps
    assert steps is not UNSET
    assert [(step.status, step.time) for step in steps] == [
        ("proposed", "1970-01-01T00:01:00Z"),
        ("disputed", "1970-01-01T02:01:00Z"),
    ]
    assert (steps[0].account, steps[0].price) == (checksum_address(an_address("ann")), "0")
    assert steps[1].transaction_hash == a_word("answer 7260")
    assert render_market(a_market(), an_event(), BLOBS).resolution_steps is UNSET


def test_a_neg_risk_market_has_its_ids_in_the_contracts() -> None:
    fields = {"is_neg_risk": True, "neg_risk_market_id": "0x01", "neg_risk_request_id": "0x02"}
    event = an_event(is_neg_risk=True, neg_risk_market_id="0x01")
    market = render_market(a_market(**fields), event, BLOBS)
    assert (market.neg_risk_market_id, market.neg_risk_request_id) == ("0x01", "0x02")
    assert render_event(event, BLOBS).neg_risk_market_id == "0x01"
    assert render_market(a_market(), an_event(), BLOBS).neg_risk_request_id is UNSET


def test_the_markets_of_an_event_of_several_are_named_by_their_titles() -> None:
    grouped = an_event(market_mode="multi_multiple")
    assert render_market(a_market(), grouped, BLOBS).group_item_title == "Rain"
    assert render_market(a_market(), an_event(), BLOBS).group_item_title == ""


def test_fees_are_in_basis_points() -> None:
    market = render_market(a_market(fee_rate_bps=20), an_event(), BLOBS)
    assert (market.maker_base_fee, market.taker_base_fee, market.fees_enabled) == (20, 20, True)


def test_an_event_inside_a_market_has_no_markets_and_a_market_inside_an_event_no_event() -> None:
    tag = CatalogTag(1, "World", "world", NOW_MS, 0)
    market = render_market(a_market(), an_event(), BLOBS, [tag], has_event=True)
    event = render_event(an_event(), BLOBS, [tag], [a_market()])
    assert market.events == [render_event(an_event(), BLOBS)]
    assert event.markets == [render_market(a_market(), an_event(), BLOBS)]
    assert market.tags == event.tags == [render_tag(tag)]


def test_a_tag_has_its_id_as_a_string() -> None:
    tag = render_tag(CatalogTag(1, "World", "world", NOW_MS, 5))
    assert (tag.id, tag.label, tag.slug) == ("1", "World", "world")
    assert tag.created_at == tag.published_at == tag.updated_at == "2027-01-15T08:00:00Z"
