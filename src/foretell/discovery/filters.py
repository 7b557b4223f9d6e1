"""Filters of lists of events and markets.

A filter may ask for something that this installation does not have, such as a market maker. Then the
filter is None and the list is empty, which differs from a filter that lets all rows pass.
"""

from collections.abc import Sequence
from typing import Any, Final

from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Address, Bytes32, parse_address, parse_bytes32
from foretell.domain.values.tokens import is_token_id
from foretell.edge.parameters import (
    Parameter,
    boolean,
    conditions,
    entries,
    ids,
    ignored,
    instant_ms,
    optional_boolean,
    text,
    units,
)
from foretell.edge.query import Query
from foretell.store.index.oracle_answers import AnswerStep
from foretell.store.queries.catalog_filters import EventFilter, MarketFilter
from foretell.store.queries.sorted_pages import SortField

RESOLVED: Final = "resolved"
ISO_TIME: Final = "in ISO 8601; UTC if it has no offset"


def _parse_question_ids(found: Sequence[str]) -> list[Bytes32]:
    try:
        return [parse_bytes32(entry) for entry in found]
    except MalformedHex as error:
        raise MalformedQuery("question_ids", "a list of ids, each 0x and 64 hex digits") from error


def _parse_token_ids(found: Sequence[str]) -> list[AssetId]:
    if not all(map(is_token_id, found)):
        raise MalformedQuery("clob_token_ids", "a list of decimal integers")
    return [AssetId(entry) for entry in found]


INCLUDE_TAG: Final = boolean("include_tag", "include the tags of the event", default=False)
ACTIVE: Final = optional_boolean("active", "false matches nothing: every listed row is active")
CLOSED: Final = optional_boolean("closed", "only resolved rows, or only unresolved ones")
ABSENT_FLAGS: Final = (
    optional_boolean("archived", "true matches nothing: no row is archived"),
    optional_boolean("featured", "true matches nothing: no row is featured"),
    optional_boolean("cyom", "true matches nothing: no row is cyom"),
)
TAG_IDS: Final = ids("tag_id", "tag ids, any of them")
TAG_SLUGS: Final = entries("tag_slug", "tag slugs, any of them; also as tag", "tag")
CREATOR: Final = text("creator", "address of the creator")
START_MIN: Final = instant_ms("start_date_min", f"listed at this time or later, {ISO_TIME}")
START_MAX: Final = instant_ms("start_date_max", f"listed at this time or before, {ISO_TIME}")
END_MIN: Final = instant_ms("end_date_min", f"endDate at this time or later, {ISO_TIME}")
END_MAX: Final = instant_ms("end_date_max", f"endDate at this time or before, {ISO_TIME}")
SHARED_IGNORED: Final = ignored("related_tags", "mirror", "locale")
SHARED_PARAMETERS: Final = (
    ACTIVE,
    CLOSED,
    *ABSENT_FLAGS,
    TAG_IDS,
    TAG_SLUGS,
    CREATOR,
    START_MIN,
    START_MAX,
    END_MIN,
    END_MAX,
    SHARED_IGNORED,
)

EVENT_IDS: Final = ids("id", "event ids")
EVENT_SLUGS: Final = entries("slug", "event slugs")
EXCLUDED_TAG_IDS: Final = ids("exclude_tag_id", "ids of tags to exclude")
EVENT_LIQUIDITY_MIN: Final = units(
    "liquidity_min", "liquidity of the event in collateral, at least"
)
EVENT_LIQUIDITY_MAX: Final = units("liquidity_max", "liquidity of the event in collateral, at most")
EVENT_VOLUME_MIN: Final = units("volume_min", "volume of the event in collateral, at least")
EVENT_VOLUME_MAX: Final = units("volume_max", "volume of the event in collateral, at most")
RECURRENCE: Final = text("recurrence", "no event is recurring").hidden()
SERIES_SLUGS: Final = entries("series_slug", "series slugs, any of them")
SERIES_IDS: Final = ids("series_id", "series ids, any of them")
EVENT_IGNORED: Final = ignored("include_chat", "include_template", "include_children")
EVENT_PARAMETERS: Final = (
    EVENT_IDS,
    EVENT_SLUGS,
    EXCLUDED_TAG_IDS,
    EVENT_LIQUIDITY_MIN,
    EVENT_LIQUIDITY_MAX,
    EVENT_VOLUME_MIN,
    EVENT_VOLUME_MAX,
    RECURRENCE,
    SERIES_SLUGS,
    SERIES_IDS,
    EVENT_IGNORED,
    *SHARED_PARAMETERS,
)

MARKET_IDS: Final = ids("id", "market ids")
MARKET_SLUGS: Final = entries("slug", "market slugs")
CONDITION_IDS: Final = conditions("condition_ids", "condition ids", "conditionId", "condition_id")
TOKEN_IDS: Final = entries("clob_token_ids", "token ids").convert(_parse_token_ids)
QUESTION_IDS: Final = entries("question_ids", "question ids").convert(_parse_question_ids)
MARKET_EVENT_IDS: Final = ids("event_id", "event ids", "eventId")
MARKET_EVENT_SLUGS: Final = entries("event_slug", "event slugs", "eventSlug")
STATUS: Final = text("uma_resolution_status", "proposed, disputed or resolved")
GAME_IDS: Final = entries("game_id", "a provider's ids of games")
MARKET_TYPES: Final = entries("sports_market_types", "types of sports markets, any of them")
MARKET_LIQUIDITY_MIN: Final = units(
    "liquidity_num_min", "liquidity of the market in collateral, at least"
)
MARKET_LIQUIDITY_MAX: Final = units(
    "liquidity_num_max", "liquidity of the market in collateral, at most"
)
MARKET_VOLUME_MIN: Final = units("volume_num_min", "volume of the market in collateral, at least")
MARKET_VOLUME_MAX: Final = units("volume_num_max", "volume of the market in collateral, at most")
ABSENT_KINDS: Final[tuple[Parameter[list[str] | str | int | None], ...]] = (
    entries("market_maker_address", "no market has an automated market maker").hidden(),
    units("rewards_min_size", "no market has rewards").hidden(),
)
MARKET_PARAMETERS: Final = (
    MARKET_IDS,
    MARKET_SLUGS,
    CONDITION_IDS,
    TOKEN_IDS,
    QUESTION_IDS,
    MARKET_EVENT_IDS,
    MARKET_EVENT_SLUGS,
    STATUS,
    MARKET_LIQUIDITY_MIN,
    MARKET_LIQUIDITY_MAX,
    MARKET_VOLUME_MIN,
    MARKET_VOLUME_MAX,
    GAME_IDS,
    MARKET_TYPES,
    *ABSENT_KINDS,
    INCLUDE_TAG,
    *SHARED_PARAMETERS,
)


def read_event_filter(query: Query) -> EventFilter | None:
    """Return the filter of a list of events, or None when no event can pass."""
    fields = _read_shared_fields(query)
    excluded = query.read(EXCLUDED_TAG_IDS)
    recurrence = query.read(RECURRENCE)
    series_ids, series_slugs = query.read(SERIES_IDS), query.read(SERIES_SLUGS)
    event_ids, slugs = query.read(EVENT_IDS), query.read(EVENT_SLUGS)
    amounts = {
        SortField.LIQUIDITY: (query.read(EVENT_LIQUIDITY_MIN), query.read(EVENT_LIQUIDITY_MAX)),
        SortField.VOLUME: (query.read(EVENT_VOLUME_MIN), query.read(EVENT_VOLUME_MAX)),
    }
    query.read(EVENT_IGNORED)
    if fields is None or recurrence:
        return None
    fields["ranges"] |= amounts
    return EventFilter(
        **fields,
        event_ids=event_ids or None,
        event_slugs=slugs,
        excluded_tag_ids=excluded,
        series_ids=series_ids,
        series_slugs=series_slugs,
    )


def read_market_filter(query: Query) -> MarketFilter | None:
    """Return the filter of a list of markets, or None when no market can pass."""
    fields = _read_shared_fields(query)
    named: dict[str, Any] = {
        "market_ids": query.read(MARKET_IDS),
        "slugs": query.read(MARKET_SLUGS),
        "condition_ids": query.read(CONDITION_IDS),
        "question_ids": query.read(QUESTION_IDS),
        "token_ids": query.read(TOKEN_IDS),
        "event_ids": query.read(MARKET_EVENT_IDS) or None,
        "event_slugs": query.read(MARKET_EVENT_SLUGS),
        "game_ids": query.read(GAME_IDS),
        "market_types": query.read(MARKET_TYPES),
    }
    amounts = {
        SortField.LIQUIDITY: (query.read(MARKET_LIQUIDITY_MIN), query.read(MARKET_LIQUIDITY_MAX)),
        SortField.VOLUME: (query.read(MARKET_VOLUME_MIN), query.read(MARKET_VOLUME_MAX)),
    }
    absent = [query.read(parameter) for parameter in ABSENT_KINDS]
    status = query.read(STATUS)
    if fields is None or any(absent) or status not in {None, RESOLVED, *AnswerStep}:
        return None
    if status is not None:
        if fields["is_closed"] is (status != RESOLVED):
            return None
        fields["is_closed"] = status == RESOLVED
        named["answer_step"] = None if status == RESOLVED else status
    fields["ranges"] |= amounts
    return MarketFilter(**fields, **named)


def _read_shared_fields(query: Query) -> dict[str, Any] | None:
    """Return the filters that events and markets share, or None when no row can pass them."""
    absent = [query.read(parameter) for parameter in ABSENT_FLAGS]
    is_active = query.read(ACTIVE)
    creator_name = query.read(CREATOR)
    fields = {
        "tag_ids": query.read(TAG_IDS),
        "tag_slugs": query.read(TAG_SLUGS),
        "is_closed": query.read(CLOSED),
        "ranges": {
            SortField.CREATED: (query.read(START_MIN), query.read(START_MAX)),
            SortField.ENDS: (query.read(END_MIN), query.read(END_MAX)),
        },
    }
    query.read(SHARED_IGNORED)
    creator = _parse_creator(creator_name)
    is_unknown_creator = creator_name is not None and creator is None
    if any(absent) or is_active is False or is_unknown_creator:
        return None
    return fields | {"creator": creator}


def _parse_creator(name: str | None) -> Address | None:
    """Return the address of a creator; any other name is no creator's."""
    try:
        return None if name is None else parse_address(name)
    except MalformedHex:
        return None
