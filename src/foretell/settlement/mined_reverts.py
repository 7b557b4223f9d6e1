"""Judge a trade whose transaction was mined and reverted although its simulation passed.

A wallet with code can answer rightly while it is simulated and burn all gas when it is mined. So the
fills are mined one by one: those of honest makers settle, and who reverts alone again is blamed.
"""

from typing import Final

from foretell.domain.exchange.settlement import (
    FailureReport,
    Settlement,
    report_of_two_faced,
    taken_apart,
    two_faced_order,
)
from foretell.settlement.context import SettlementContext
from foretell.settlement.match_call import Matched, match_call
from foretell.store.outbox.settlements import count_mined_reverts, has_mined_trade

TWO_FACED: Final = "reverts only when it is mined"


async def judge_mined_revert(
    context: SettlementContext, settlement: Settlement, matched: Matched, cause: str
) -> FailureReport:
    """Return which fills leave the trade, or which order ends it; empty to try it as it is.

    A trade that would revert in a simulation now is left to the next try, which examines it.
    """
    trade = matched.row.trade
    if await context.operator.revert_of(match_call(matched, "")) is not None:
        return FailureReport()
    if len(trade.fills) > 1:
        return taken_apart(trade.trade_id, trade.fills, cause)
    async with context.database.reading() as tx:
        if await count_mined_reverts(tx, settlement) < context.options.mined_reverts_max:
            return FailureReport()
        is_acquitted = await has_mined_trade(tx, trade.taker_order_id)
    with_code = await context.operator.wallets_with_code([trade.taker, trade.fills[0].maker])
    blamed = two_faced_order(trade, with_code, is_taker_acquitted=is_acquitted)
    return report_of_two_faced(trade.trade_id, blamed, f"{TWO_FACED}: {cause}")
