"""The dear reads of the discovery API: an event or a market has many fields, and an order is computed for all of them."""

from types import MappingProxyType
from typing import Final

from foretell.edge.read_answers import DearRule, DearRules

ROWS_CHEAP_MAX: Final = 20
LIST: Final = DearRule(ROWS_CHEAP_MAX, dear_names={"order"})

DEAR_READS: Final[DearRules] = MappingProxyType(
    dict.fromkeys(
        ("/events", "/events/keyset", "/events/pagination", "/markets", "/markets/keyset"), LIST
    )
)
