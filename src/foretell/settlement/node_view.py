"""The node's view of the exchanges, for trades that are sent without a simulation.

It is asked for at most twice a second: a node that executes a block answers late, and settlement would
wait for one batch before it prepares the next. A batch is mined after its check in any case, so one of an
exchange that closes meanwhile may fail, as it may while it is on its way.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

import structlog

from foretell.chain.sender import Sender
from foretell.chain.views import ViewCall
from foretell.domain.contracts.batches import MATCHES_MAX, MATCHES_MAX_VIEW
from foretell.domain.contracts.calldata import IS_OPERATOR
from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.exchange_status import PAUSED

KEPT_MS: Final = 500

log = structlog.get_logger(__name__)


class NodeView(NamedTuple):
    """The newest block's number, and the exchanges that settle for the batch settler and its caller."""

    head: int
    open_exchanges: frozenset[Address]


class NodeViews:
    """The last view of each set of exchanges, of which there are few."""

    def __init__(self) -> None:
        self._view_by_exchanges: dict[frozenset[Address], tuple[int, NodeView]] = {}

    async def view(
        self,
        operator: Sender,
        settler: Address,
        exchanges: Collection[Address],
        now_ms: Callable[[], int],
    ) -> NodeView:
        """Return a view that is not too old."""
        wanted, asked_at_ms = frozenset(exchanges), now_ms()
        known_at_ms, known = self._view_by_exchanges.get(wanted, (0, None))
        if known is not None and 0 <= asked_at_ms - known_at_ms < KEPT_MS:
            return known
        head, is_open = await asyncio.gather(
            operator.head(), _open_exchanges(operator, settler, sorted(wanted))
        )
        view = NodeView(head, is_open)
        self._view_by_exchanges[wanted] = asked_at_ms, view
        return view


async def _open_exchanges(
    operator: Sender, settler: Address, exchanges: Collection[Address]
) -> frozenset[Address]:
    """Return the exchanges that settle for the batch settler and the account that calls it.

    None does where the settler is another contract: what it did would not be known.
    """
    asked = [
        call
        for exchange in exchanges
        for call in (
            ViewCall(exchange, PAUSED),
            ViewCall(exchange, IS_OPERATOR, (settler,)),
            ViewCall(exchange, IS_OPERATOR, (operator.address,)),
        )
    ]
    try:
        matches_max, *rest = await operator.call_views(
            [ViewCall(settler, MATCHES_MAX_VIEW), *asked]
        )
    except ChainInconsistent as error:
        log.warning("batches are simulated", cause=error.message)
        return frozenset()
    if matches_max != MATCHES_MAX:
        return frozenset()
    answers = iter(rest)
    found = zip(exchanges, zip(answers, answers, answers, strict=True), strict=True)
    return frozenset(
        exchange
        for exchange, (is_paused, has_settler, has_sender) in found
        if has_settler and has_sender and not is_paused
    )
