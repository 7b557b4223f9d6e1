"""Cancels at an exchange of orders that were not placed here: the newest are remembered.

Anybody can cancel orders that nobody has placed, for the gas alone, so the number of them is bounded. An order whose
cancel was forgotten can be placed and matched, but never settles: the contract knows its cancel for ever. Its trade
fails, the order leaves its book, and those that it met trade again.

They have two generations, sets without an order of their own, so that equal states have equal bytes. When the newer
one is full it becomes the earlier one, whose orders are forgotten.
"""

from collections.abc import Sequence
from typing import Final

from foretell.domain.exchange.commands import CancelSeen
from foretell.domain.exchange.state import State
from foretell.domain.values.hexadecimal import Address, Bytes32

CANCELS_KEPT_MIN: Final = 50_000
"""How many of the newest cancels are remembered at least, and half of how many at most."""


def was_canceled(state: State, exchange: Address, order_id: Bytes32) -> bool:
    """Return whether an order's cancel is remembered."""
    key = (exchange, order_id)
    return key in state.canceled_orders or key in state.canceled_earlier


def remember_cancel(state: State, canceled: CancelSeen) -> None:
    """Remember the cancel of an order that was not placed; the newer generation is only empty without any."""
    if was_canceled(state, canceled.exchange, canceled.order_id):
        return
    if len(state.canceled_orders) >= CANCELS_KEPT_MIN:
        state.canceled_earlier, state.canceled_orders = state.canceled_orders, set()
    state.canceled_orders.add((canceled.exchange, canceled.order_id))


def cancels_seen(state: State, cancels: Sequence[CancelSeen]) -> list[CancelSeen]:
    """Return the cancels of orders that are live or delayed, and of those that could still be placed, oldest first.

    Of the latter the newest are looked at that are always remembered: the others may have been forgotten, and are no
    news whenever all rows are read again.
    """
    ours, unplaced = [], []
    for each in cancels:
        if each.order_id in state.live_orders or each.order_id in state.delays.orders:
            ours.append(each)
        elif each.order_id not in state.placed:
            unplaced.append(each)
    newest = unplaced[-CANCELS_KEPT_MIN:]
    return ours + [each for each in newest if not was_canceled(state, each.exchange, each.order_id)]
