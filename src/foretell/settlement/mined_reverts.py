"""Judge a trade whose transaction was mined and reverted.

A wallet with code can answer rightly while it is simulated and fail when it is mined. The node's trace
of the transaction shows whose call failed. Without a trace nobody is blamed, since any wallet can also
take its funds away and bring them back around a block. The fills are then mined one by one, so that
those of honest makers settle.
"""

from typing import Final, NamedTuple

from foretell.domain.evm.transaction import SentTx
from foretell.domain.exchange.failed_trades.short_orders import orders_of
from foretell.domain.exchange.settlement import (
    EarlierTrades,
    FailureReport,
    Settlement,
    report_of_reverting,
    reverting_wallet,
    taken_apart,
)
from foretell.domain.exchange.wallets.wallet_bars import Offence, unpaying_wallet
from foretell.settlement.context import SettlementContext
from foretell.settlement.match_call import Matched, match_call
from foretell.store.outbox.settlements import count_mined_reverts, is_split, load_earlier

REVERTS_WHEN_MINED: Final = "reverts only when it is mined"


class MinedRevert(NamedTuple):
    """What follows a transaction that was mined in vain, and who made it fail, if that is proved."""

    report: FailureReport
    gas: int = 0
    offence: Offence | None = None


async def judge_mined_revert(
    context: SettlementContext, settlement: Settlement, matched: Matched, sent: SentTx
) -> MinedRevert:
    """Return which fills leave the trade, or which order ends it; an empty report to try it as it is.

    A trade that would revert in a simulation now is left to the next try, which examines it, as often as
    one may be mined in vain: a wallet may also fail while it is judged.
    """
    trade, cause = matched.row.trade, f"{REVERTS_WHEN_MINED}: {sent.failure}"
    gas, offence = 0, None
    if sent.mined_hash is not None:
        receipt = await context.operator.receipt(sent.mined_hash)
        gas = 0 if receipt is None else receipt.gas_used
        failed = await context.operator.failed_calls(sent.mined_hash)
        wallets = {trade.taker, *(fill.maker for fill in trade.fills)}
        if (wallet := reverting_wallet(failed, wallets)) is not None:
            offence = Offence(wallet, is_reverting=True, gas=gas, cause=cause)
            return MinedRevert(report_of_reverting(trade, wallet, cause), gas, offence)
        if (wallet := unpaying_wallet(failed, wallets, context.assets)) is not None:
            offence = Offence(wallet, is_reverting=False, gas=gas, cause=cause)
    report = await _report(context, settlement, matched, cause)
    if offence is not None and report.final_cause is not None:
        blamed = orders_of(trade, offence.wallet, cause)
        report = FailureReport(tuple(blamed), report.final_cause)
    return MinedRevert(report, gas, offence)


async def _report(
    context: SettlementContext, settlement: Settlement, matched: Matched, cause: str
) -> FailureReport:
    """Return what follows a revert of which no wallet's code is to blame."""
    trade = matched.row.trade
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
