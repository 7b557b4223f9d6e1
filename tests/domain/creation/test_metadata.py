import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.rigs.payloads import RULES_TEXT, a_payload, event_fields
from tests.rigs.values import CHAIN_ID, a_word, an_address

from foretell.domain.creation.metadata import (
    Icons,
    Resolver,
    draft_document,
    final_document,
)
from foretell.domain.creation.plan import MarketIds
from foretell.domain.values.document_fields import INSTANT_MS_MAX, INSTANT_MS_MIN, parse_instant_ms
from foretell.domain.values.hexadecimal import checksum_address
from foretell.domain.values.instants import iso_time
from foretell.domain.values.tokens import TokenPair

ICONS = Icons(event="event-image", market="market-image")
IDS = MarketIds(
    key="binary",
    asked_id=a_word("question"),
    question_id=a_word("question"),
    condition_id=a_word("condition"),
    tokens=TokenPair(yes=2**255, no=7),
)
RESOLVER = Resolver(oracle=an_address("oracle"), adapter=an_address("adapter"))


def test_a_draft_has_the_fields_known_before_the_question_is_asked() -> None:
    payload = a_payload(slug="Rain!", mainCategorySlug="rain")

    document = json.loads(draft_document(payload, payload.markets[0], ICONS))

    assert document == {
        "schema": "foretell-market",
        "version": "1",
        "name": "Rain in Bergen",
        "slug": "rain",
        "short_title": "Rain in Bergen",
        "question": "Will it rain in Bergen?",
        "description": RULES_TEXT,
        "market_rules": RULES_TEXT,
        "resolution_source": "https://example.org/station",
        "resolution_source_url": "https://example.org/station",
        "resolution_type": "dro_moov2",
        "icon": "market-image",
        "outcomes": [{"outcome": "Yes"}, {"outcome": "No"}],
        "neg_risk": False,
        "neg_risk_other": False,
        "end_time": "2035-06-01T12:00:00Z",
        "creator": checksum_address(an_address("creator")),
        "chain_id": CHAIN_ID,
        "event": {
            "title": "Rain in Bergen",
            "slug": "rain",
            "icon": "event-image",
            "rules": RULES_TEXT,
            "end_time": "2035-06-01T12:00:00Z",
            "market_mode": "binary",
            "show_market_icons": False,
            "neg_risk": False,
            "enable_neg_risk": False,
            "neg_risk_augmented": False,
            "tags": [
                {"name": "Weather", "slug": "weather", "is_main_category": False},
                {"name": "Norway", "slug": "norway", "is_main_category": False},
                {"name": "Rain", "slug": "rain", "is_main_category": True},
                {"name": "Europe", "slug": "europe", "is_main_category": False},
                {"name": "Daily", "slug": "daily", "is_main_category": False},
            ],
        },
    }


@pytest.mark.spec(4, 17)
def test_the_final_document_adds_tokens_and_resolver() -> None:
    payload = a_payload(binaryOutcomeYes="Wet", binaryOutcomeNo="Dry")
    (market,) = payload.markets

    draft = json.loads(draft_document(payload, market, ICONS))
    final = json.loads(final_document(payload, market, ICONS, IDS, RESOLVER))

    assert final == draft | {
        "outcomes": [
            {"outcome": "Wet", "token_id": str(2**255)},
            {"outcome": "Dry", "token_id": "7"},
        ],
        "question_id": a_word("question"),
        "condition_id": a_word("condition"),
        "resolver": checksum_address(an_address("oracle")),
        "resolution_adapter_address": checksum_address(an_address("adapter")),
    }


def test_the_final_document_of_a_market_in_a_neg_risk_event_has_its_ids() -> None:
    payload = a_payload(**event_fields())
    ids = replace(IDS, asked_id=a_word("asked"), neg_risk_market_id=a_word("event"))

    final = json.loads(final_document(payload, payload.markets[0], ICONS, ids, RESOLVER))

    assert final["neg_risk"]
    assert final["question_id"] == a_word("question")
    assert final["neg_risk_market_id"] == a_word("event")
    assert final["neg_risk_request_id"] == a_word("asked")


def test_markets_of_an_event_of_several_have_icons_of_their_own() -> None:
    payload = a_payload()
    several = replace(payload, markets=payload.markets * 2)

    assert json.loads(draft_document(several, several.markets[0], ICONS))["event"][
        "show_market_icons"
    ]


def test_the_same_market_gives_the_same_bytes() -> None:
    payload = a_payload()
    (market,) = payload.markets

    assert final_document(payload, market, ICONS, IDS, RESOLVER) == final_document(
        a_payload(), market, ICONS, IDS, RESOLVER
    )


@given(st.integers(INSTANT_MS_MIN, INSTANT_MS_MAX))
@example(INSTANT_MS_MIN)
@example(INSTANT_MS_MAX)
def test_every_moment_that_is_read_can_be_written_and_read_again(moment_ms: int) -> None:
    assert parse_instant_ms(iso_time(moment_ms)) == moment_ms
