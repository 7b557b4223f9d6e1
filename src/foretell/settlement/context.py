"""Dependencies of settlement, built once by the composition root."""

from collections.abc import Callable
from dataclasses import dataclass, field

from foretell.chain.sender import Sender
from foretell.domain.exchange.settlement import SettlementOptions
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.call_forms import CallForms
from foretell.store.database import Database


@dataclass(frozen=True, slots=True)
class SettlementContext:
    """Settlement by one operator account; without a batch settler each trade has a transaction."""

    database: Database
    operator: Sender
    now_ms: Callable[[], int]
    options: SettlementOptions = field(default_factory=SettlementOptions)
    batch_settler: Address | None = None
    call_forms: CallForms = field(default_factory=CallForms)
