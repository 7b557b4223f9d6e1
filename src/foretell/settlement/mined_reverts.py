"""Judge a trade whose transaction was mined and reverted.

A wallet with code can answer rightly while it is simulated and fail when it is mined. The node's trace
of the transaction shows whose call failed. Without a trace nobody is blamed, since any wallet can also
take its funds away and bring them back around a block. The fills are then mined one by one, so that
those of honest makers settle.
"""

from typing import Final

from foretell.domain.evm.transaction import SentTx
from foretell.domain.exchange.settlement import (
    EarlierTrades,
    FailureReport,
    Settlement,
    report_of_reverting,
    reverting_wallet,
    taken_apart,
)
from foretell.settlement.context import SettlementContext
from foretell.settlement.match_call import Matched, match_call
from foretell.store.outbox.settlements import count_mined_reverts, is_split, load_earlier

REVERTS_WHEN_MINED: Final = "reverts only when it is mined"


async def judge_mined_revert(
    context: SettlementContext, settlement: Settlement, matched: Matched, sent: SentTx
) -> FailureReport:
    """Return which fills leave the trade, or which order ends it; empty to try it as it is.

    A trade that would revert in a simulation now is left to the next try, which examines it, as often as
    one may be mined in vain: a wallet may also fail while it is judged.
    """
    trade, cause = matched.row.trade, f"{REVERTS_WHEN_MINED}: {sent.failure}"
    if sent.mined_hash is not None:
        failed = await context.operator.failed_calls(sent.mined_hash)
        wallets = {trade.taker, *(fill.maker for fill in trade.fills)}
        if (wallet := reverting_wallet(failed, wallets)) is not None:
            return report_of_reverting(trade, wallet, cause)
    is_spent = await _is_spent(context, settlement, matched)
    if not is_spent and await context.operator.revert_of(match_call(matched, "")) is not None:
        return FailureReport()
    if len(trade.fills) > 1:
        return taken_apart(trade.trade_id, trade.fills, cause)
    return FailureReport((), cause if is_spent else None)


async def _is_spent(context: SettlementContext, settlement: Settlement, matched: Matched) -> bool:
    """Return whether a trade was mined in vain as often as one may be.

    The revert of a trade before its other fills left it is not held against it, and nothing is while
    earlier trades of its wallets are open.
    """
    async with context.database.reading() as tx:
        reverts = await count_mined_reverts(tx, settlement) - await is_split(tx, settlement)
        earlier = await load_earlier(tx, matched.row)
    return earlier is EarlierTrades.NONE and reverts >= context.options.mined_reverts_max
