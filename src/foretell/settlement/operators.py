"""The accounts that settle: the first sends any transaction, the further ones batches alone.

Accounts are mined in any order, so with several of them nothing is sent that needs a transaction on its
way: batches are simulated on the newest block, and a trade alone waits for the earlier ones of its wallets.
"""

from collections.abc import Collection, Sequence
from typing import Final

import structlog

from foretell.chain.artifacts import reason_of
from foretell.chain.sender import SIMULATED_AT, Sender
from foretell.chain.views import LATEST, ViewCall
from foretell.domain.contracts.calldata import IS_OPERATOR
from foretell.domain.errors.chain import ExecutionReverted, RpcRefused
from foretell.domain.evm.transaction import SentTx, TxStatus
from foretell.domain.exchange.settlement import EarlierTrades, Settlement
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.context import SettlementContext
from foretell.settlement.stored import load_matched
from foretell.store.outbox.settlements import load_earlier
from foretell.store.outbox.transactions import SETTLEMENT, WaitingTxs, load_waiting

NOTHING_WAITS: Final = WaitingTxs(0, 0)
NOT_OPERATOR: Final = "NotOperator"
"""The revert of a whole batch whose account is no operator of its exchange."""
CURE: Final = "make it an operator of the exchange, as `foretell deploy` does, or remove its key from operator_keys"

log = structlog.get_logger(__name__)


def simulated_at(context: SettlementContext) -> str:
    """Return the block in whose state batches are simulated."""
    return LATEST if context.further_operators else SIMULATED_AT


async def operators_for(context: SettlementContext, exchanges: Sequence[Address]) -> list[Sender]:
    """Return the account for a batch of each of these exchanges: the one with the fewest on their way.

    One whose last transaction no node has taken, that cannot pay for another or is no operator of the
    exchange gets none; the first account gets what no account can send.
    """
    first = context.operator
    if not context.further_operators:
        return [first] * len(exchanges)
    async with context.database.reading() as tx:
        waiting = await load_waiting(tx, SETTLEMENT)
    senders = (first, *context.further_operators)
    sent = {each.address: waiting.get(each.address, NOTHING_WAITS) for each in senders}
    most = {each.address: await _affordable(context, each, sent[each.address]) for each in senders}
    load = {address: counts.sent for address, counts in sent.items()}
    chosen = []
    for exchange in exchanges:
        able = [
            each
            for each in senders
            if load[each.address] < most[each.address] and await _may_send(context, each, exchange)
        ]
        sender = min(able, key=lambda each: load[each.address], default=first)
        load[sender.address] += 1
        chosen.append(sender)
    return chosen


async def _affordable(context: SettlementContext, sender: Sender, waiting: WaitingTxs) -> int:
    """Return how many batches an account may have on their way, 0 while no node takes its last one."""
    if waiting.pending:
        return 0
    return await sender.affordable(context.options.batch_gas_max)


async def _may_send(context: SettlementContext, sender: Sender, exchange: Address) -> bool:
    """Return whether the exchange has the account as an operator; it is asked again after some time."""
    if sender is context.operator or context.grants.has(sender.address, exchange, context.now_ms()):
        return True
    is_operator = await _is_operator(context, sender.address, exchange)
    if is_operator:
        context.grants.add(sender.address, exchange, context.now_ms())
    else:
        _dismiss(context, sender.address, exchange)
    return is_operator


async def _is_operator(context: SettlementContext, account: Address, exchange: Address) -> bool:
    """Return whether the exchange has the account as an operator now."""
    asked = [ViewCall(exchange, IS_OPERATOR, (account,))]
    (is_operator,) = await context.operator.call_views(asked)
    return bool(is_operator)


def _dismiss(context: SettlementContext, account: Address, exchange: Address) -> None:
    """Have an account get no batch of an exchange before this has it as an operator again."""
    context.grants.drop(account, exchange)
    if context.lines.admit(f"no operator {account} {exchange}") is not None:
        log.error("account is no operator", account=account, exchange=exchange, cure=CURE)


def is_dismissal(
    context: SettlementContext, sender: Sender, exchange: Address, result: bytes | RpcRefused
) -> bool:
    """Return whether a batch fails in its simulation because its account was dismissed, which gets no more then.

    What the first account sends is for nobody else, so nothing follows for it.
    """
    if sender is context.operator or not isinstance(result, ExecutionReverted):
        return False
    if reason_of(result) != NOT_OPERATOR:
        return False
    _dismiss(context, sender.address, exchange)
    return True


async def is_of_dismissed(context: SettlementContext, sent: SentTx, exchange: Address) -> bool:
    """Return whether a batch was mined in vain, and its account is no operator any more, which gets no more then.

    Every trade of it has failed for that, so it says nothing about any.
    """
    if sent.status is not TxStatus.FAILED or await _is_operator(context, sent.sender, exchange):
        return False
    _dismiss(context, sent.sender, exchange)
    return True


async def must_wait(
    context: SettlementContext, settlement: Settlement, closed: Collection[Address]
) -> bool:
    """Return whether a trade alone waits for an earlier one of its wallets, which another account may carry.

    No account carries those of a closed exchange.
    """
    if not context.further_operators:
        return False
    (matched,) = await load_matched(context, [settlement])
    async with context.database.reading() as tx:
        return await load_earlier(tx, matched.row, closed) is EarlierTrades.MAY_PASS
