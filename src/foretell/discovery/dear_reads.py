"""The dear reads of the discovery API: an event or a market has many fields, and some orders are along no index."""

from types import MappingProxyType
from typing import Final

from foretell.discovery.pages import MARKET_SORTS
from foretell.edge.read_answers import DearRule, DearRules
from foretell.store.queries.totals_walks import INDEXED

ROWS_CHEAP_MAX: Final = 20
FOUND_CHEAP_MAX: Final = 25
"""The default of a search: a page for a person."""
LIST: Final = DearRule(
    ROWS_CHEAP_MAX,
    indexed_orders={name for name, field in MARKET_SORTS.items() if field in INDEXED},
    plain_names={"limit", "offset", "after_cursor", "ascending", "active", "closed"},
)
SEARCH: Final = DearRule(FOUND_CHEAP_MAX, dear_names={"page"}, limit_name="limit_per_type")

DEAR_READS: Final[DearRules] = MappingProxyType(
    {
        **dict.fromkeys(
            ("/events", "/events/keyset", "/events/pagination", "/markets", "/markets/keyset"), LIST
        ),
        "/public-search": SEARCH,
    }
)
