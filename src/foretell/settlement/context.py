"""Dependencies of settlement, built once by the composition root."""

from collections.abc import Callable
from dataclasses import dataclass, field

from foretell.chain.sender import Sender
from foretell.domain.exchange.settlement import SettlementOptions
from foretell.store.database import Database


@dataclass(frozen=True, slots=True)
class SettlementContext:
    """Settlement by one operator account."""

    database: Database
    operator: Sender
    now_ms: Callable[[], int]
    options: SettlementOptions = field(default_factory=SettlementOptions)
