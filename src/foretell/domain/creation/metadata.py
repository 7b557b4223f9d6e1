"""Public documents that describe a market, for permanent storage.

A draft is stored before the market exists. The final document adds the tokens and the resolver. The
same market always gives the same bytes, so the id of a document is known before it is stored.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from foretell.domain.creation.data_items import ItemTag
from foretell.domain.creation.payload import MarketDraft, Payload
from foretell.domain.creation.plan import MarketIds
from foretell.domain.creation.sports_metadata import sports_document
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.domain.values.instants import iso_time

SCHEMA: Final = "foretell-market"
SCHEMA_VERSION: Final = "1"
JSON_TAG: Final = ItemTag("Content-Type", "application/json")
WEBP_TAG: Final = ItemTag("Content-Type", "image/webp")
APP_TAG: Final = ItemTag("App-Name", "Foretell")

_ENCODER: Final = msgspec.json.Encoder(order="sorted", decimal_format="number")


class Icons(NamedTuple):
    """The storage ids of the event's image and the market's, which may be the event's.

    Logos are by the side of their team. A market's icon and a logo may be the link of a logo instead.
    """

    event: str
    market: str
    logos: Mapping[str, str] = MappingProxyType({})


class Resolver(NamedTuple):
    """The oracle that answers the question, and the adapter that reports the answer."""

    oracle: Address
    adapter: Address


def draft_document(payload: Payload, market: MarketDraft, icons: Icons) -> bytes:
    """Return the document of a market before its question is asked."""
    return _encoded(_market(payload, market, icons))


def final_document(
    payload: Payload, market: MarketDraft, icons: Icons, ids: MarketIds, resolver: Resolver
) -> bytes:
    """Return the document of a market that trades."""
    outcomes = (
        {"outcome": market.outcome_yes, "token_id": str(ids.tokens.yes)},
        {"outcome": market.outcome_no, "token_id": str(ids.tokens.no)},
    )
    return _encoded(
        _market(payload, market, icons)
        | {
            "outcomes": outcomes,
            "question_id": ids.question_id,
            "condition_id": ids.condition_id,
            **_event_ids(ids),
            "resolver": checksum_address(resolver.oracle),
            "resolution_adapter_address": checksum_address(resolver.adapter),
        }
    )


def _event_ids(ids: MarketIds) -> dict[str, str]:
    if ids.neg_risk_market_id is None:
        return {}
    return {"neg_risk_market_id": ids.neg_risk_market_id, "neg_risk_request_id": ids.asked_id}


def _market(payload: Payload, market: MarketDraft, icons: Icons) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "name": market.title,
        "slug": market.slug,
        "short_title": market.short_title,
        "question": market.question,
        "description": payload.resolution_rules,
        "market_rules": payload.resolution_rules,
        "resolution_source": payload.resolution_source,
        "resolution_source_url": payload.resolution_source,
        "resolution_type": payload.resolution_type,
        "icon": icons.market,
        "outcomes": ({"outcome": market.outcome_yes}, {"outcome": market.outcome_no}),
        "neg_risk": payload.is_neg_risk,
        "neg_risk_other": False,
        "end_time": iso_time(payload.ends_at_ms),
        "creator": checksum_address(payload.creator),
        "chain_id": payload.chain_id,
        "event": _event(payload, icons),
        **_sports(payload, market, icons),
    }


def _sports(payload: Payload, market: MarketDraft, icons: Icons) -> dict[str, Any]:
    if payload.sports is None:
        return {}
    return {"sports": sports_document(payload.sports, payload.slug, market.sports, icons.logos)}


def _event(payload: Payload, icons: Icons) -> dict[str, Any]:
    return {
        "title": payload.title,
        "slug": payload.slug,
        "icon": icons.event,
        "rules": payload.resolution_rules,
        "end_time": iso_time(payload.ends_at_ms),
        "market_mode": payload.market_mode,
        "show_market_icons": len(payload.markets) > 1,
        "neg_risk": payload.is_neg_risk,
        "enable_neg_risk": payload.is_neg_risk,
        "neg_risk_augmented": False,
        "tags": [
            {
                "name": category.label,
                "slug": category.slug,
                "is_main_category": category.slug == payload.main_category_slug,
            }
            for category in payload.tags
        ],
        **_stream(payload),
    }


def _stream(payload: Payload) -> dict[str, str]:
    url = None if payload.sports is None else payload.sports.details.livestream_url
    return {} if url is None else {"livestream_url": url}


def _encoded(document: dict[str, Any]) -> bytes:
    return _ENCODER.encode(document)
