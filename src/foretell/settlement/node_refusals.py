"""Distinguish a node that refuses a trade from one that refuses every transaction of the accounts.

A refused trade waits and holds up nobody. But while the node takes nothing at all, every trade waits, and that is a
lag: orders go on being promised a settlement otherwise. Only a question in which no wallet takes part shows it,
since wallets may cause refusals of their own trades.

A node may also refuse a batch for its fee alone. Batches are smaller then.
"""

from dataclasses import replace
from typing import Final

import structlog

from foretell.domain.errors.chain import RpcRefused
from foretell.domain.evm.fee_cap import is_beyond_fee_cap
from foretell.domain.evm.transaction import OutgoingTx, SentTx, TxStatus
from foretell.domain.exchange.settlement import SettlementOptions
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.context import SettlementContext
from foretell.settlement.exchange_status import PAUSED
from foretell.settlement.match_call import match_gas
from foretell.store.outbox.refused_fees import load_refused_fees

CAPPED: Final = "node caps the fee of a batch"
CURE: Final = "start the node with --rpc.txfeecap 0, or with a higher cap"

log = structlog.get_logger(__name__)


async def check_node(
    context: SettlementContext, exchange: Address, refusal: RpcRefused, makers: int = 1
) -> None:
    """Raise the refusal of a trade if the node refuses every account another call, with the gas of one with so many makers."""
    another = OutgoingTx("", exchange, PAUSED.encode(), match_gas(makers))
    for sender in (context.operator, *context.further_operators):
        try:
            await sender.check_accepts(another)
        except RpcRefused:
            continue
        return
    raise refusal


async def bounded_options(context: SettlementContext) -> SettlementOptions:
    """Return the options with so little gas for a batch that the node takes its fee, as far as refusals show."""
    options, bound, now_ms = context.options, context.fee_bound, context.now_ms()
    async with context.database.reading() as tx:
        refused = await load_refused_fees(tx)
    for fee_wei, words in refused:
        if is_beyond_fee_cap(words):
            bound.lower(fee_wei, now_ms)
    if (bound_wei := bound.wei(now_ms)) is None:
        return options
    gas_max = bound_wei // await context.operator.max_fee_wei()
    if gas_max >= options.batch_gas_max:
        return options
    if context.lines.admit(CAPPED) is not None:
        log.error(CAPPED, gas_max=gas_max, bound_wei=bound_wei, cure=CURE)
    return replace(options, batch_gas_max=gas_max)


def is_capped(context: SettlementContext, sent: SentTx) -> bool:
    """Return whether the node refused a batch for its fee, so that only its nonce was used up; later ones are smaller."""
    if sent.status is not TxStatus.CANCELED or not is_beyond_fee_cap(sent.failure):
        return False
    context.fee_bound.lower(sent.gas * sent.attempts[0].fees.max_fee_wei, context.now_ms())
    return True
