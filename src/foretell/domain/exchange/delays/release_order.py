"""Release of a delayed order: it is placed as if it arrived now, and what it can no longer do closes it.

An order that arrives is refused while settlement is behind, if it would match; one that is released then is closed.
"""

from typing import Final

from foretell.domain.errors.exchange import InvalidExpiration, MarketClosed, NotEnoughFunds
from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.commands import ReleaseOrder
from foretell.domain.exchange.decision import Placed
from foretell.domain.exchange.delays.delayed_orders import take_delayed
from foretell.domain.exchange.effects import CloseReason
from foretell.domain.exchange.place_order import place_order, placement_of
from foretell.domain.exchange.state import State
from foretell.domain.exchange.waiting.delays import DelayedOrder
from foretell.domain.values.hexadecimal import word_bytes

_REASONS: Final = (
    (InvalidExpiration, CloseReason.EXPIRED),
    (NotEnoughFunds, CloseReason.UNDERFUNDED),
    (MarketClosed, CloseReason.MARKET_RESOLVED),
)


def release_order(state: State, command: ReleaseOrder) -> Placed | None:
    """Return what was decided about a delayed order, None if it is not delayed any more."""
    held = take_delayed(state, command.order_id)
    if held is None:
        return None
    state.placed.pop(command.order_id, None)
    market = state.market_by_id[command.condition_id]
    market.forgotten_order_ids.discard(word_bytes(command.order_id))
    if command.is_settlement_behind:
        return _close(state, command, held, CloseReason.SETTLEMENT_BEHIND)
    try:
        placed = place_order(state, command)
    except ForetellError as refusal:
        return _close(state, command, held, _reason(refusal))
    assert placed is not None, "its placement was forgotten"
    return placed


def _close(state: State, command: ReleaseOrder, held: DelayedOrder, reason: CloseReason) -> Placed:
    placed = Placed(held.size_units, 0, 0, reason, None)
    state.remember(command.order_id, placement_of(command, placed))
    return placed


def _reason(refusal: ForetellError) -> CloseReason:
    """Return why a refused order is closed: one that only takes and finds too little is killed."""
    for kind, reason in _REASONS:
        if isinstance(refusal, kind):
            return reason
    return CloseReason.KILLED
