"""Revert reasons of wallet transactions, in words for clients.

A Safe reports only that its call failed. The call is therefore tried again alone, which gives its own
reason. The node's message comes last.
"""

from foretell.chain.artifacts import reason_of
from foretell.domain.contracts.safe import OPERATION_CALL
from foretell.domain.errors.chain import ExecutionReverted, RpcRefused
from foretell.domain.errors.families import Upstream
from foretell.domain.relay.request import RelayKind, RelayRequest
from foretell.relayer.context import RelayerContext


async def find_revert_reason(
    context: RelayerContext, request: RelayRequest, reverted: ExecutionReverted
) -> str:
    """Return the reason for which a request's transaction reverted in the node's trial run."""
    inner = await _inner_revert(context, request)
    if inner is None:
        return f"the transaction would revert, and was not sent: {reason_text(reverted)}"
    outer = reason_of(reverted)
    return f"the wallet's call would revert ({outer}), and was not sent: {reason_text(inner)}"


def reason_text(refusal: RpcRefused) -> str:
    """Return the reason of a refused call, followed by the node's message."""
    said = refusal.rpc_message
    reason = reason_of(refusal) if isinstance(refusal, ExecutionReverted) else said
    return said if reason in said else f"{reason}: {said}"


async def _inner_revert(context: RelayerContext, request: RelayRequest) -> ExecutionReverted | None:
    """Return the revert of the wallet's single call; the calls of a bundle cannot be tried alone.

    It has the gas of the whole transaction: tokens call the wallets that receive them, which may be any code.
    """
    if request.kind is not RelayKind.SAFE or request.operation != OPERATION_CALL:
        return None
    try:
        return await context.reader.revert_of(
            request.wallet, request.target, request.calldata, request.gas
        )
    except Upstream:
        return None
