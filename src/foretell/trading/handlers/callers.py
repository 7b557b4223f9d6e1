"""Who calls a private route."""

from foretell.edge.auth import L2Caller
from foretell.edge.codec import AnyRequest, read_body
from foretell.trading.context import TradingContext


async def caller_of(request: AnyRequest, context: TradingContext) -> tuple[L2Caller, bytes]:
    """Return whose credentials signed this very request, and its body, or refuse.

    The path is the one that clients sign: whatever the API is mounted under has been taken off.
    """
    raw = await read_body(request)
    path: str = request.scope["path"]
    return await context.key_ring.check_l2(request.headers, request.method, path, raw), raw
