"""Distinguish a node that refuses a trade from one that refuses every transaction of the accounts.

A refused trade waits and holds up nobody. But while the node takes nothing at all, every trade waits, and that is a
lag: orders go on being promised a settlement otherwise. Only a question in which no wallet takes part shows it,
since wallets may cause refusals of their own trades.
"""

from foretell.domain.errors.chain import RpcRefused
from foretell.domain.evm.transaction import OutgoingTx
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.context import SettlementContext
from foretell.settlement.exchange_status import PAUSED
from foretell.settlement.match_call import match_gas


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
