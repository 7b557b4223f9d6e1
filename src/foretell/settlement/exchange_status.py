"""Check that the exchange is open to the operator's account, and that its collateral moves.

While it is paused, or the account is not one of its operators, every match reverts, and that says
nothing about any trade. The exchange itself is asked, because a wallet that receives tokens can
revert with the same words. While the collateral's token is paused, or refuses the exchange, every match
reverts, too: the token is asked to move nothing from the exchange to itself, in which no wallet takes part.
"""

from typing import Final

from foretell.chain.sender import Sender
from foretell.chain.views import ViewCall
from foretell.domain.contracts.calldata import IS_OPERATOR, TRANSFER
from foretell.domain.errors.chain import ExchangeClosed
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address

CLOSED_REASONS: Final = frozenset({"NotOperator", "Paused"})
"""The exchange's reverts while it is closed."""

PAUSED: Final = contract_function("paused()", "(bool)")


async def check_exchange(operator: Sender, exchange: Address) -> None:
    """Raise ExchangeClosed while the exchange settles nothing for this account."""
    is_operator, is_paused = await operator.call_views(
        [ViewCall(exchange, IS_OPERATOR, (operator.address,)), ViewCall(exchange, PAUSED)]
    )
    if not is_operator:
        raise ExchangeClosed(exchange, f"{operator.address} is not one of its operators")
    if is_paused:
        raise ExchangeClosed(exchange, "it is paused")


async def check_collateral(operator: Sender, exchange: Address, collateral: Address) -> None:
    """Raise ExchangeClosed while the collateral's token lets the exchange transfer nothing."""
    reverted = await operator.revert_for(exchange, collateral, TRANSFER.encode(exchange, 0))
    if reverted is not None:
        raise ExchangeClosed(exchange, f"its collateral is not transferred: {reverted.message}")
