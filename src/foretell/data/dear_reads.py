"""The dear reads of the data API."""

from types import MappingProxyType
from typing import Final

from foretell.edge.read_answers import DearRule, DearRules

DEAR_READS: Final[DearRules] = MappingProxyType(
    {
        "/trades": DearRule(dear_names={"filterAmount"}),
        "/activity": DearRule(dear_names={"sortBy"}),
        "/positions": DearRule(dear_names={"title"}),
        "/closed-positions": DearRule(dear_names={"title"}),
        "/holders": DearRule(),
        "/oi": DearRule(),
        "/live-volume": DearRule(),
    }
)
"""The others are of one wallet or one market, or kept for all clients."""
