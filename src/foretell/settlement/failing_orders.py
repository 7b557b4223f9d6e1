"""Which orders keep a trade from settling, when it reverts and nothing before it can be why.

The taker is tried with each maker apart, so that the makers who pass settle without the others. A
fill that reverts alone leaves the trade and is tried by itself; nobody else waits for it. What its
own exchange will never take again (canceled, an earlier nonce, expired) is over at once, and that is
asked of the last block: what only waits to be mined ends nothing.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

import msgspec

from foretell.chain.artifacts import reason_of
from foretell.chain.sender import Sender
from foretell.chain.views import LATEST
from foretell.domain.contracts.calldata import encode_validate_order
from foretell.domain.evm.transaction import OutgoingTx
from foretell.domain.exchange.matching import Fill
from foretell.domain.exchange.order import Side, SignedOrder
from foretell.domain.exchange.trade import trade_with
from foretell.domain.values.amounts import exact_cost_units, lot_units
from foretell.settlement.exchange_status import CLOSED_REASONS, check_exchange
from foretell.settlement.match_call import Matched, match_call
from foretell.store.outbox.refused_orders import RefusedOrder

PROBES_AT_ONCE_MAX: Final = 8
"""How many calls a node runs at a time for one trade."""

ENDED_REASONS: Final = frozenset({"OrderFilledOrCancelled", "InvalidNonce", "OrderExpired"})
"""Why the exchange takes an order never again."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class FailureReport:
    """What was found out: the orders to tell of, and why the whole trade is over, if it is.

    With neither the trade is to be tried again as it is.
    """

    refused: list[RefusedOrder] = field(default_factory=list)
    over: str | None = None


class _Failing(NamedTuple):
    fill: Fill
    cause: str
    is_ended: bool
    is_blamed: bool


async def find_failing_orders(operator: Sender, matched: Matched) -> FailureReport:
    """Return which orders of a trade that reverts are why; asks the node a bounded number of times.

    Raises ExchangeClosed when it is the exchange itself.
    """
    trade = matched.row.trade
    taker_id, fills = trade.taker_order_id, trade.fills
    cause = await _end_of(operator, matched, matched.taker.signed)
    if cause is not None:
        found = RefusedOrder(trade.trade_id, taker_id, 0, cause, is_blamed=True)
        return FailureReport([found], cause)
    causes = await _all([_revert(operator, matched, (fill,)) for fill in fills])
    if CLOSED_REASONS.intersection(filter(None, causes)):
        await check_exchange(operator, matched.exchange)
    if not any(causes):
        return FailureReport(await _those_too_many(operator, matched))
    pairs = list(zip(fills, causes, strict=True))
    has_passing = None in causes
    failing = await _all(
        [
            _judge(operator, matched, fill, cause, has_passing=has_passing)
            for fill, cause in pairs
            if cause is not None
        ]
    )
    return _findings(trade.trade_id, failing, has_passing=has_passing)


def _findings(trade_id: str, failing: Sequence[_Failing], *, has_passing: bool) -> FailureReport:
    """Return who leaves: what may pass later stays only where nothing passes now."""
    ended = [each for each in failing if each.is_ended]
    waiting = [each for each in failing if not each.is_ended]
    if not ended and not has_passing:
        return FailureReport()
    if not waiting and not has_passing:
        refused = [_refused(trade_id, each, 0) for each in ended]
        return FailureReport(refused, ended[0].cause)
    leaving = [_refused(trade_id, each, 1) for each in ended]
    leaving += [_refused(trade_id, each, 2) for each in waiting if has_passing]
    return FailureReport(leaving)


def _refused(trade_id: str, failing: _Failing, part: int) -> RefusedOrder:
    return RefusedOrder(
        trade_id, failing.fill.maker_order_id, part, failing.cause, failing.is_blamed
    )


async def _judge(
    operator: Sender, matched: Matched, fill: Fill, cause: str, *, has_passing: bool
) -> _Failing:
    """Return whether a maker's order is over, or would revert however little were taken of it.

    A maker is to blame only where its taker passes with another one. A fill that is merely too
    large for one of the two is nobody's fault that would show again.
    """
    end = await _end_of(operator, matched, matched.maker(fill).signed)
    if end is not None:
        return _Failing(fill, end, is_ended=True, is_blamed=True)
    is_blamed = False
    if has_passing:
        lot = _lot_of(fill, matched.row.trade.ticks_per_one)
        is_blamed = await _revert(operator, matched, (lot,)) is not None
    return _Failing(fill, cause, is_ended=False, is_blamed=is_blamed)


def _lot_of(fill: Fill, ticks_per_one: int) -> Fill:
    """Return the smallest fill at the same price."""
    size = lot_units(fill.price_ticks, ticks_per_one)
    cost = exact_cost_units(size, fill.price_ticks, ticks_per_one)
    making, taking = (cost, size) if fill.side is Side.BUY else (size, cost)
    return msgspec.structs.replace(fill, size_units=size, making_units=making, taking_units=taking)


async def _those_too_many(operator: Sender, matched: Matched) -> list[RefusedOrder]:
    """Return the fills that pass alone, but not after those before them: one part, for later."""
    kept: tuple[Fill, ...] = ()
    refused = []
    trade = matched.row.trade
    for fill in trade.fills:
        cause = await _revert(operator, matched, (*kept, fill))
        if cause is None:
            kept = (*kept, fill)
        else:
            order_id = fill.maker_order_id
            refused.append(RefusedOrder(trade.trade_id, order_id, 1, cause, is_blamed=False))
    return refused if kept else []


async def _revert(operator: Sender, matched: Matched, fills: tuple[Fill, ...]) -> str | None:
    """Return why the trade would revert with these fills alone, or None when it would pass."""
    trade = trade_with(
        matched.row.trade, fills, matched.taker.signed, has_budget=matched.taker.has_budget
    )
    call = match_call(matched._replace(row=matched.row._replace(trade=trade)), "")
    reverted = await operator.revert_of(call)
    return None if reverted is None else reason_of(reverted)


async def _end_of(operator: Sender, matched: Matched, order: SignedOrder) -> str | None:
    """Return why the exchange takes an order never again, or None when it may."""
    call = OutgoingTx("", matched.exchange, encode_validate_order(order))
    reverted = await operator.revert_of(call, LATEST)
    reason = None if reverted is None else reason_of(reverted)
    return reason if reason in ENDED_REASONS else None


async def _all(questions: Sequence[Awaitable[Answer]]) -> list[Answer]:
    """Return the answers in their order, a few asked at once; none is left behind by a failure."""
    room = asyncio.Semaphore(PROBES_AT_ONCE_MAX)

    async def ask(question: Awaitable[Answer]) -> Answer:
        async with room:
            return await question

    answers = await asyncio.gather(*map(ask, questions), return_exceptions=True)
    failures = [answer for answer in answers if isinstance(answer, BaseException)]
    if failures:
        raise failures[0]
    return [answer for answer in answers if not isinstance(answer, BaseException)]
