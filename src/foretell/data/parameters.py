"""Query parameters that several routes of the data API take."""

from typing import Final

from foretell.domain.errors.http import MalformedQuery
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import Bytes32
from foretell.edge.parameters import (
    ENTRIES_MAX,
    ID_MAX,
    choice,
    conditions,
    ids,
    integer,
    optional_choice,
    optional_integer,
    optional_wallet,
    wallet,
)
from foretell.edge.query import Query

EVENT_IDS_MAX: Final = 100
DESCENDING: Final = "DESC"
SKIPPED: Final = "rows before the page, which are left out"

USER: Final = wallet("user", "address of the wallet")
ANY_USER: Final = optional_wallet("user", "address of a wallet")
MARKET: Final = conditions("market", f"condition ids, at most {ENTRIES_MAX}")
EVENT: Final = ids("eventId", "event ids, in place of market", entries_max=EVENT_IDS_MAX)
SIDE: Final = optional_choice("side", "only trades of this side", [side.name for side in Side])
START: Final = optional_integer("start", 0, ID_MAX, "first second, included")
END: Final = optional_integer("end", 0, ID_MAX, "last second, included")
LIMIT: Final = integer("limit", 100, 0, 500, "rows of the page")
OFFSET: Final = integer("offset", 0, 0, 10_000, SKIPPED)
SORT_DIRECTION: Final = choice(
    "sortDirection", "the least first, or the greatest", ("ASC", DESCENDING), DESCENDING
)


def read_markets(query: Query) -> tuple[list[Bytes32], list[int]]:
    """Return the conditions or the events that a query names; it may name only one of the two."""
    condition_ids, event_ids = query.read(MARKET), query.read(EVENT)
    if condition_ids and event_ids:
        raise MalformedQuery("eventId", "absent if market is given")
    return condition_ids, event_ids
