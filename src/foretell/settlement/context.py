"""What settlement needs to do its work, made once where the program is put together."""

from collections.abc import Callable
from dataclasses import dataclass, field

from foretell.chain.sender import Sender
from foretell.store.database import Database


@dataclass(frozen=True, slots=True)
class SettlementOptions:
    """What an operator may choose.

    A trade that the chain refuses is tried again, each time after twice the delay, until it was
    tried `attempts_max` times: about two minutes with these values.
    """

    in_flight_max: int = 32
    """How many trades are on their way to the chain at once."""
    attempts_max: int = 8
    retry_delay_ms: int = 1_000
    retry_delay_ms_max: int = 60_000
    wait_delay_ms: int = 500
    """How long a trade waits for an earlier one before it is looked at again."""
    refusal_delay_ms: int = 500
    """How long after a node's first refusal a trade is sent again; then twice as long each time."""
    refusal_delay_ms_max: int = 30_000


@dataclass(frozen=True, slots=True)
class SettlementContext:
    """Settlement by one operator account."""

    database: Database
    operator: Sender
    now_ms: Callable[[], int]
    options: SettlementOptions = field(default_factory=SettlementOptions)
