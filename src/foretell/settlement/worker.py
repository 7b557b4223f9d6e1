"""Worker of settlement: watches sent transactions and settles matched trades."""

from functools import partial
from typing import Final

from foretell.domain.errors.chain import ExchangeClosed, RpcRefused
from foretell.runtime.failures import FailureLog
from foretell.runtime.loops import run_together
from foretell.runtime.worker import PollIntervals, run_watching_worker
from foretell.settlement.context import SettlementContext
from foretell.settlement.settle import run_once
from foretell.store.outbox.transactions import SETTLEMENT
from foretell.store.trading.trades import TOPIC as TRADES_TOPIC

PACE: Final = PollIntervals(busy_s=0.5, idle_s=15.0)


async def run(context: SettlementContext) -> None:
    """Settle trades and watch the operator's transactions until cancelled."""
    senders = (context.operator, *context.further_operators)
    accounts = [each.address for each in senders]
    watching = [partial(each.run, accounts) for each in senders]
    await run_together([*watching, partial(run_settlements, context)])


async def run_settlements(context: SettlementContext) -> None:
    """Settle until cancelled.

    An exchange that is closed to the operator is no failure of the loop: the trades of another
    exchange continue at their usual pace.
    """
    closed = FailureLog("settlements")

    async def step() -> bool:
        try:
            is_busy = await run_once(context)
        except ExchangeClosed as refusal:
            closed.failed(refusal, is_expected=True)
            return True
        closed.passed()
        return is_busy

    watch = partial(context.database.watching, TRADES_TOPIC, SETTLEMENT.topic)
    await run_watching_worker("settlements", step, PACE, watch, expected=(RpcRefused,))
