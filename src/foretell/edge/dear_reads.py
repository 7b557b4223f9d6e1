"""Rules that tell the dear reads of an API from the cheap ones, by the query alone.

A cheap read returns a few rows that an index finds. A dear one returns many, skips many, names many markets, or sorts
by a value that is computed for every row. The rules only choose who answers: the answer is the same.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from foretell.edge.query import PARAMETERS_MAX

OFFSET_CHEAP_MAX: Final = 1_000
QUERY_CHEAP_BYTES_MAX: Final = 512
"""A longer query names many markets or events."""
DIGITS_MAX: Final = 18


class DearRule(NamedTuple):
    """When a read of a route is dear: by its rows, or by a parameter that is present."""

    rows_max: int = 100
    dear_names: Collection[str] = ()

    def is_dear(self, query: bytes) -> bool:
        """Return whether a read with this query is dear; a malformed query is refused soon, so it is cheap."""
        if len(query) > QUERY_CHEAP_BYTES_MAX:
            return True
        try:
            pairs = parse_qsl(query.decode("latin-1"), max_num_fields=PARAMETERS_MAX)
        except ValueError:
            return False
        return any(self._makes_dear(name, value) for name, value in pairs)

    def _makes_dear(self, name: str, value: str) -> bool:
        if name in self.dear_names:
            return True
        most = {"limit": self.rows_max, "offset": OFFSET_CHEAP_MAX}.get(name)
        is_number = value.isascii() and value.isdigit() and len(value) <= DIGITS_MAX
        return most is not None and is_number and int(value) > most


DearRules = Mapping[str, DearRule]
"""The rules of an API by the paths of its routes; a read of any other path is cheap."""
