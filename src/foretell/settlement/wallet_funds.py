"""Find the orders that cannot be paid for, or that the exchange refuses, at a block.

A trade that the chain refuses until it is given up is looked at once more: each wallet's balance and allowance
of what it gives, and each order by itself, in one request. So it is known who kept the others from settling.
"""

from collections.abc import Sequence
from typing import Final

from foretell.chain.artifacts import reason_of
from foretell.chain.sender import SIMULATED_AT
from foretell.domain.contracts.calldata import ALLOWANCE_UNITS_MAX, encode_validate_order
from foretell.domain.errors.chain import ExecutionReverted, RpcRefused
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.transaction import OutgoingTx
from foretell.domain.exchange.failed_trades.short_orders import (
    HeldFunds,
    Holding,
    OrderPart,
    parts_of_orders,
    refused_orders,
    short_orders,
)
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.settlement import RefusedOrder, end_of
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.context import SettlementContext
from foretell.settlement.match_call import Matched

WORD_BYTES: Final = 32

_BALANCE: Final = contract_function("balanceOf(address)", "(uint256)")
_ALLOWANCE: Final = contract_function("allowance(address,address)", "(uint256)")
_TOKEN_BALANCE: Final = contract_function("balanceOf(address,uint256)", "(uint256)")
_IS_APPROVED: Final = contract_function("isApprovedForAll(address,address)", "(bool)")


async def orders_to_blame(context: SettlementContext, matched: Matched) -> list[RefusedOrder]:
    """Return the orders that keep a trade from settling, none if the chain shows nothing of that.

    The newest block is asked first. The state in which trades are simulated has what waits at the node, too: a
    wallet that only there lacks its funds keeps the trade from settling as well.

    Raises RpcRefused if the node does not say.
    """
    head = await context.operator.head()
    for at in (hex(head), SIMULATED_AT):
        found = await refused_at(context, matched, at)
        if found:
            return found
    return []


async def refused_at(context: SettlementContext, matched: Matched, at: str) -> list[RefusedOrder]:
    """Return the orders of a trade that the exchange refuses at a block, or that are not paid for there."""
    tokens, collateral = context.conditional_tokens, context.collateral
    if tokens is None or collateral is None:
        return []
    row, exchange = matched.row, matched.exchange
    parts = parts_of_orders(row.trade, row.token_id, row.fill_tokens)
    holdings = list(dict.fromkeys(part.holding for part in parts))
    asked = [call for each in holdings for call in _funds_calls(each, exchange, collateral, tokens)]
    checks = [
        OutgoingTx("", exchange, encode_validate_order(matched.order_by_id[part.order_id].signed))
        for part in parts
    ]
    answers = await context.operator.results_of([*asked, *checks], at)
    for answer in answers:
        if isinstance(answer, RpcRefused) and not isinstance(answer, ExecutionReverted):
            raise answer
    causes = {
        part.order_id: reason_of(answer)
        for part, answer in zip(parts, answers[len(asked) :], strict=True)
        if isinstance(answer, ExecutionReverted)
    }
    if len(causes) == len(parts):
        # An exchange that takes no order at all says nothing about one, unless each is over by its own wallet.
        causes = {order_id: end for order_id, cause in causes.items() if (end := end_of(cause))}
    trade_id = row.trade.trade_id
    short = _short(trade_id, parts, holdings, answers[: len(asked)])
    refused = refused_orders(trade_id, causes)
    return [*refused, *(each for each in short if each.order_id not in causes)]


def _short(
    trade_id: str,
    parts: Sequence[OrderPart],
    holdings: Sequence[Holding],
    answers: Sequence[bytes | RpcRefused],
) -> list[RefusedOrder]:
    """Return the orders that are not paid for; none while a token does not say what is held."""
    if any(isinstance(each, RpcRefused) or len(each) != WORD_BYTES for each in answers):
        return []
    units = iter([int.from_bytes(each) for each in answers if isinstance(each, bytes)])
    funds = {
        holding: HeldFunds(
            held, allowed if holding[1] == COLLATERAL else allowed * ALLOWANCE_UNITS_MAX
        )
        for holding, held, allowed in zip(holdings, units, units, strict=True)
    }
    return short_orders(trade_id, parts, funds)


def _funds_calls(
    holding: Holding, exchange: Address, collateral: Address, tokens: Address
) -> list[OutgoingTx]:
    """Return the calls for what a wallet holds of an asset, and for what it allows the exchange to move."""
    wallet, asset = holding
    if asset == COLLATERAL:
        return [
            OutgoingTx("", collateral, _BALANCE.encode(wallet)),
            OutgoingTx("", collateral, _ALLOWANCE.encode(wallet, exchange)),
        ]
    return [
        OutgoingTx("", tokens, _TOKEN_BALANCE.encode(wallet, int(asset))),
        OutgoingTx("", tokens, _IS_APPROVED.encode(wallet, exchange)),
    ]
