"""The dear reads of the discovery API: an event or a market has many fields, and some filters and orders are along no index."""

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, Final

from foretell.discovery import filters, pages
from foretell.discovery.catalog import (
    EVENT_KEYSET_PARAMETERS,
    EVENTS_PARAMETERS,
    MARKET_KEYSET_PARAMETERS,
    MARKETS_PARAMETERS,
)
from foretell.discovery.sports import ABBREVIATIONS, NAMES
from foretell.edge.parameters import Parameter
from foretell.edge.read_answers import DearRule, DearRules
from foretell.store.queries.totals_walks import INDEXED

ROWS_CHEAP_MAX: Final = 20
FOUND_CHEAP_MAX: Final = 25
"""The default of a search: a page for a person."""

PAGED: Final = (
    *(pages.LIMIT, pages.OFFSET, pages.CURSOR, pages.ASCENDING),
    *(pages.EVENT_ORDER, pages.MARKET_ORDER),
)
"""The page of a list; its rows, its offset and its order have rules of their own."""
ALONG_AN_INDEX: Final = (
    *(filters.EVENT_IDS, filters.EVENT_SLUGS),
    *(filters.MARKET_IDS, filters.MARKET_SLUGS, filters.CONDITION_IDS, filters.TOKEN_IDS),
    *(filters.MARKET_EVENT_IDS, filters.MARKET_EVENT_SLUGS, filters.GAME_IDS),
)
"""Filters that name rows, which an index finds however many others there are."""
PASSING_MOST_OR_NONE: Final = (
    *(filters.ACTIVE, filters.CLOSED, filters.RECURRENCE, filters.INCLUDE_TAG),
    *(*filters.ABSENT_FLAGS, *filters.ABSENT_KINDS),
    *(filters.EVENT_IGNORED, filters.SHARED_IGNORED),
)
"""Those that are ignored or match nothing, and `closed`: the indexes of orders have the open rows apart."""


def _names(parameters: Iterable[Parameter[Any]]) -> frozenset[str]:
    return frozenset(name for each in parameters for name in each.names)


CHEAP_NAMES: Final = _names((*PAGED, *ALONG_AN_INDEX, *PASSING_MOST_OR_NONE))


def _rule_of(parameters: Iterable[Parameter[Any]]) -> DearRule:
    """Return the rule of a list: any other filter may match few rows or none, and all are read to find that."""
    return DearRule(
        ROWS_CHEAP_MAX,
        dear_names=_names(parameters) - CHEAP_NAMES,
        indexed_orders={name for name, field in pages.MARKET_SORTS.items() if field in INDEXED},
    )


EVENTS: Final = _rule_of((*EVENTS_PARAMETERS, *EVENT_KEYSET_PARAMETERS))
COUNTED_EVENTS: Final = EVENTS._replace(dear_names={*EVENTS.dear_names, *filters.CLOSED.names})
"""All events that match are counted, too: with `closed` each one's markets are read."""
MARKETS: Final = _rule_of((*MARKETS_PARAMETERS, *MARKET_KEYSET_PARAMETERS))
SEARCH: Final = DearRule(FOUND_CHEAP_MAX, dear_names={"page"}, limit_name="limit_per_type")
TEAMS: Final = DearRule(dear_names=_names((NAMES, ABBREVIATIONS)))

DEAR_READS: Final[DearRules] = MappingProxyType(
    {
        "/events": EVENTS,
        "/events/keyset": EVENTS,
        "/events/pagination": COUNTED_EVENTS,
        "/markets": MARKETS,
        "/markets/keyset": MARKETS,
        "/public-search": SEARCH,
        "/teams": TEAMS,
    }
)
