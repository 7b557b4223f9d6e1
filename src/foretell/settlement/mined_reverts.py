"""Judge a trade whose transaction was mined and reverted.

A wallet with code can answer rightly while it is simulated and fail when it is mined. The node's trace
of the transaction shows whose call failed. Without such a proof the fills are mined one by one, so that those
of honest makers settle. What that costs is held against each wallet whose order was over or not paid for after the
block, or else against the one that can have been the cause, if there is only one: any wallet can take its funds
away and bring them back around a block.
"""

from typing import Final, NamedTuple

import structlog

from foretell.domain.errors.chain import RpcRefused
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
from foretell.domain.exchange.trade import Trade
from foretell.domain.exchange.wallets.wallet_bars import Offence, unpaying_wallet
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.settlement.context import SettlementContext
from foretell.settlement.match_call import Matched, match_call
from foretell.settlement.wallet_funds import refused_at
from foretell.store.outbox.failed_deliveries import has_failed_delivery
from foretell.store.outbox.landed_trades import load_landings
from foretell.store.outbox.mined_reverts import count_mined_reverts, is_split
from foretell.store.outbox.settlements import load_earlier

log = structlog.get_logger(__name__)

REVERTS_WHEN_MINED: Final = "reverts only when it is mined"
EXPIRED: Final = "OrderExpired"
"""The exchange's refusal of an order whose time is over, which settlement was late for."""


class MinedRevert(NamedTuple):
    """What follows a transaction that was mined in vain, and the wallets for which its gas counts."""

    report: FailureReport
    gas: int = 0
    offences: tuple[Offence, ...] = ()


async def judge_mined_revert(
    context: SettlementContext, settlement: Settlement, matched: Matched, sent: SentTx
) -> MinedRevert:
    """Return which fills leave the trade, or which order ends it; an empty report to try it as it is.

    A trade that would revert in a simulation now is left to the next try, which examines it, as often as
    one may be mined in vain: a wallet may also fail while it is judged.
    """
    trade, cause = matched.row.trade, f"{REVERTS_WHEN_MINED}: {sent.failure}"
    gas, block_number = 0, None
    offences: tuple[Offence, ...] = ()
    if sent.mined_hash is not None:
        receipt = await context.operator.receipt(sent.mined_hash)
        gas = 0 if receipt is None else receipt.gas_used
        block_number = None if receipt is None else receipt.block_number
        failed = await context.operator.failed_calls(sent.mined_hash)
        wallets = {trade.taker, *(fill.maker for fill in trade.fills)}
        if (wallet := reverting_wallet(failed, wallets)) is not None:
            offences = (Offence(wallet, is_reverting=True, gas=gas, cause=cause),)
            return MinedRevert(report_of_reverting(trade, wallet, cause), gas, offences)
        if (wallet := unpaying_wallet(failed, wallets, context.assets)) is not None:
            offences = (Offence(wallet, is_reverting=False, gas=gas, cause=cause),)
    is_passing = await context.operator.revert_of(match_call(matched, "")) is None
    if block_number is not None:
        unproven = [each.wallet for each in offences] or await _suspects(
            context, matched, block_number, is_passing=is_passing
        )
        charged = [
            wallet
            for wallet in unproven
            if not await _is_excused(context, matched, wallet, block_number)
        ]
        offences = tuple(
            Offence(wallet, is_reverting=False, gas=gas, cause=cause) for wallet in charged
        )
    report = await _report(context, settlement, matched, cause, is_passing=is_passing)
    if offences and report.final_cause is not None:
        refused = [order for each in offences for order in orders_of(trade, each.wallet, cause)]
        report = FailureReport(tuple(refused), report.final_cause)
    return MinedRevert(report, gas, offences)


async def _suspects(
    context: SettlementContext, matched: Matched, block_number: int, *, is_passing: bool
) -> list[Address]:
    """Return the wallets that a transaction can have been mined in vain for, by its block; none if it is not clear.

    Those are all whose order was over or not paid for after the block: each would have made it fail by itself, and
    only the wallet itself ends its order or takes its funds away; time alone ends an expired one. Or else that is the wallet with code of a
    single fill whose simulation passes still, where the other wallet is an account that did nothing in the
    block.
    """
    trade = matched.row.trade
    try:
        refused = await refused_at(context, matched, hex(block_number))
        blamed = [each for each in refused if each.cause != EXPIRED]
        wallets = {_wallet_of(trade, each.order_id) for each in blamed}
        if wallets or len(trade.fills) > 1 or not is_passing:
            return sorted(wallets)
        both = (trade.taker, trade.fills[0].maker)
        contracts = {*context.assets, matched.exchange}
        idle = await context.operator.idle_accounts(both, block_number, contracts)
    except RpcRefused as refusal:
        log.warning("block of a mined revert not examined", cause=refusal.message)
        return []
    if len(idle) != 1:
        return []
    (suspect,) = set(both) - idle
    is_plain = await context.operator.accounts_without_code([suspect])
    return [] if is_plain else [suspect]


async def _is_excused(
    context: SettlementContext, matched: Matched, wallet: Address, block_number: int
) -> bool:
    """Return whether the wallet may have lacked what an earlier trade failed to bring it.

    Or whether an unknown transaction filled the orders of the trade, as one of another copy of the data does.
    """
    tries_max = context.options.attempts_max
    async with context.database.reading() as tx:
        if await load_landings(tx, [matched.row.trade.trade_id]):
            return True
        return await has_failed_delivery(tx, matched.row, wallet, block_number, tries_max)


def _wallet_of(trade: Trade, order_id: Bytes32) -> Address:
    makers = {fill.maker_order_id: fill.maker for fill in trade.fills}
    return makers.get(order_id, trade.taker)


async def _report(
    context: SettlementContext,
    settlement: Settlement,
    matched: Matched,
    cause: str,
    *,
    is_passing: bool,
) -> FailureReport:
    """Return what follows a revert of which no wallet's code is to blame."""
    trade = matched.row.trade
    is_spent = await _is_spent(context, settlement, matched)
    if not is_spent and not is_passing:
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
