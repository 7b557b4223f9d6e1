"""Find the orders that keep a trade from settling, by simulated calls.

The taker is tried with each maker apart, so that the makers that pass settle without the others. A
fill that reverts alone leaves the trade and is tried by itself; no other fill waits for it. An order
that its exchange will never accept again (canceled, an earlier nonce, expired) ends at once. That is
asked of the last block: a cancel that only waits to be mined ends nothing.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final, TypeVar

from foretell.chain.artifacts import reason_of
from foretell.chain.sender import Sender
from foretell.chain.views import LATEST
from foretell.domain.contracts.calldata import encode_validate_order
from foretell.domain.evm.transaction import OutgoingTx
from foretell.domain.exchange.matching import Fill
from foretell.domain.exchange.order import SignedOrder
from foretell.domain.exchange.settlement import (
    FailingFill,
    FailureReport,
    end_of,
    report_of_failing,
    report_of_sequential,
    smallest_fill,
    taker_ended,
)
from foretell.domain.exchange.trade import trade_with
from foretell.domain.values.hexadecimal import Bytes32
from foretell.settlement.exchange_status import CLOSED_REASONS, check_exchange
from foretell.settlement.match_call import Matched, match_call

PROBES_AT_ONCE_MAX: Final = 8
"""Most calls that a node simulates at a time for one trade."""

Result = TypeVar("Result")


async def find_failing_orders(operator: Sender, matched: Matched) -> FailureReport:
    """Return which orders of a trade make it revert, after a bounded number of simulated calls.

    Raises ExchangeClosed when the exchange settles nothing at all.
    """
    trade = matched.row.trade
    taker_end = await _end_of(operator, matched, matched.taker.signed)
    if taker_end is not None:
        return taker_ended(trade.trade_id, trade.taker_order_id, taker_end)
    causes = await _all([_revert(operator, matched, (fill,)) for fill in trade.fills])
    if CLOSED_REASONS.intersection(filter(None, causes)):
        await check_exchange(operator, matched.exchange)
    if not any(causes):
        crowded = await _sequential_failures(operator, matched)
        return report_of_sequential(trade.trade_id, trade.fills, crowded)
    has_passing = None in causes
    failing = await _all(
        [
            _examine(operator, matched, fill, cause, has_passing=has_passing)
            for fill, cause in zip(trade.fills, causes, strict=True)
            if cause is not None
        ]
    )
    return report_of_failing(trade.trade_id, failing, has_passing=has_passing)


async def _examine(
    operator: Sender, matched: Matched, fill: Fill, cause: str, *, has_passing: bool
) -> FailingFill:
    """Return whether a maker's order is over, or would revert however little were taken of it.

    A maker is blamed only where its taker passes with another one. A fill that is only too large
    for one of the two is the fault of neither order.
    """
    end = await _end_of(operator, matched, matched.maker(fill).signed)
    if end is not None:
        return FailingFill(fill.maker_order_id, end, is_ended=True, is_blamed=True)
    is_blamed = False
    if has_passing:
        smallest = smallest_fill(fill, matched.row.trade.ticks_per_one)
        is_blamed = await _revert(operator, matched, (smallest,)) is not None
    return FailingFill(fill.maker_order_id, cause, is_ended=False, is_blamed=is_blamed)


async def _sequential_failures(operator: Sender, matched: Matched) -> dict[Bytes32, str]:
    """Return, by maker order, the revert of each fill that does not pass after those kept."""
    kept: tuple[Fill, ...] = ()
    causes: dict[Bytes32, str] = {}
    for fill in matched.row.trade.fills:
        cause = await _revert(operator, matched, (*kept, fill))
        if cause is None:
            kept = (*kept, fill)
        else:
            causes[fill.maker_order_id] = cause
    return causes


async def _revert(operator: Sender, matched: Matched, fills: tuple[Fill, ...]) -> str | None:
    """Return why the trade would revert with these fills alone, or None when it would pass."""
    trade = trade_with(
        matched.row.trade, fills, matched.taker.signed, has_budget=matched.taker.has_budget
    )
    call = match_call(matched._replace(row=matched.row._replace(trade=trade)), "")
    reverted = await operator.revert_of(call)
    return None if reverted is None else reason_of(reverted)


async def _end_of(operator: Sender, matched: Matched, order: SignedOrder) -> str | None:
    """Return why the exchange never accepts an order again, or None when it may."""
    call = OutgoingTx("", matched.exchange, encode_validate_order(order))
    reverted = await operator.revert_of(call, LATEST)
    return None if reverted is None else end_of(reason_of(reverted))


async def _all(
    probes: Sequence[Awaitable[Result]], at_once_max: int = PROBES_AT_ONCE_MAX
) -> list[Result]:
    """Return the results in order, a few at a time; after a failure none is left running."""
    places = asyncio.Semaphore(at_once_max)

    async def run(probe: Awaitable[Result]) -> Result:
        async with places:
            return await probe

    results = await asyncio.gather(*map(run, probes), return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    if failures:
        raise failures[0]
    return [result for result in results if not isinstance(result, BaseException)]
