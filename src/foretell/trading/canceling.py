"""Orders taken out of the book for one who signed them, in commands that any journal takes."""

from collections.abc import Sequence
from typing import Final

import msgspec

from foretell.domain.commands import CancelOrders
from foretell.domain.fold import Cancellation
from foretell.domain.hexadecimal import Address, Bytes32
from foretell.trading.engine import Engine

CANCELS_PER_COMMAND_MAX: Final = 10_000


class CancelReply(msgspec.Struct, frozen=True):
    """Which orders are out of the book by this request, and why the others are not."""

    canceled: Sequence[str]
    not_canceled: dict[Bytes32, str]


async def cancel(engine: Engine, address: Address, order_ids: Sequence[Bytes32]) -> CancelReply:
    """Take orders that an address signed out of the book, once that is durable."""
    canceled: list[str] = []
    not_canceled: dict[Bytes32, str] = {}
    for start in range(0, max(len(order_ids), 1), CANCELS_PER_COMMAND_MAX):
        part = tuple(order_ids[start : start + CANCELS_PER_COMMAND_MAX])
        outcome = await engine.submit(CancelOrders(engine.clock_ms(), address, part))
        assert isinstance(outcome, Cancellation)
        canceled += outcome.canceled
        not_canceled |= outcome.not_canceled
    return CancelReply(canceled, not_canceled)
