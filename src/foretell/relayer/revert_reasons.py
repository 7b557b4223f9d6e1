"""Why a wallet's transaction would revert, in words that a client may be told.

A Safe says only that its call failed. So the call is tried once more by itself, for its own reason;
the node's words stand at the end.
"""

from foretell.chain.artifacts import reason_of
from foretell.domain.contracts.safe import OPERATION_CALL
from foretell.domain.errors.chain import ExecutionReverted, RpcRefused
from foretell.domain.errors.families import Upstream
from foretell.domain.relay.request import RelayKind, RelayRequest
from foretell.relayer.context import RelayerContext


async def reverted_cause(
    context: RelayerContext, request: RelayRequest, reverted: ExecutionReverted
) -> str:
    """Return why a request's transaction reverted when the node tried it."""
    inner = await _inner_revert(context, request)
    if inner is None:
        return f"the transaction would revert, and was not sent: {words_of(reverted)}"
    outer = reason_of(reverted)
    return f"the wallet's call would revert ({outer}), and was not sent: {words_of(inner)}"


def words_of(refusal: RpcRefused) -> str:
    """Return why a call was refused, the node's own words at the end."""
    said = refusal.rpc_message
    reason = reason_of(refusal) if isinstance(refusal, ExecutionReverted) else said
    return said if reason in said else f"{reason}: {said}"


async def _inner_revert(context: RelayerContext, request: RelayRequest) -> ExecutionReverted | None:
    """Return how the wallet's one call reverts by itself; a bundle's calls cannot be told apart."""
    if request.kind is not RelayKind.SAFE or request.operation != OPERATION_CALL:
        return None
    try:
        return await context.reader.revert_of(request.wallet, request.target, request.calldata)
    except Upstream:
        return None
