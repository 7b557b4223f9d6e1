"""The dear reads of the data API."""

from types import MappingProxyType
from typing import Final

from foretell.edge.parameters import ID_MAX
from foretell.edge.read_answers import DearRule, DearRules

MOVED: Final = DearRule(rows_max=ID_MAX)
"""Dear for the length of its query alone. It is there for clients that read much beside others, whose reads are answered as
dear ones are."""

DEAR_READS: Final[DearRules] = MappingProxyType(
    {
        "/trades": DearRule(dear_names={"filterAmount"}),
        "/activity": DearRule(dear_names={"sortBy"}),
        "/positions": DearRule(dear_names={"title"}),
        "/closed-positions": DearRule(dear_names={"title"}),
        "/holders": DearRule(),
        "/oi": DearRule(),
        "/live-volume": DearRule(),
        **dict.fromkeys(
            (
                *("/value", "/traded", "/volume"),
                *("/v1/leaderboard", "/v1/leaderboard/biggest-wins", "/v1/biggest-winners"),
            ),
            MOVED,
        ),
    }
)
"""The others add up in places apart, need the chain, or are streamed."""
