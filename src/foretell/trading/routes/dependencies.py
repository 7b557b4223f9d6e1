"""Types that the routes share: the context that they are given, their response, and their caller."""

from typing import NamedTuple

from litestar import Response
from litestar.di import NamedDependency

from foretell.edge.auth import L2Caller
from foretell.edge.codec import AnyRequest, read_body, sent_path
from foretell.edge.throttled_application import count_for_key
from foretell.trading.context import TradingContext

JsonResponse = Response[bytes]
Context = NamedDependency[TradingContext]


class SignedRequest(NamedTuple):
    """The caller of a private route, and the body that it signed."""

    caller: L2Caller
    body: bytes


async def authenticate(request: AnyRequest, context: TradingContext) -> SignedRequest:
    """Return the caller that signed this request with an API key when it is its turn, or refuse.

    The signed path is the one that was sent, below the prefix that the API is mounted under. The time of
    the signature is checked on arrival; a key may be revoked while its request waits.
    """
    body = await read_body(request)
    path = sent_path(request)
    caller = await context.key_ring.authenticate_l2(request.headers, request.method, path, body)
    if await count_for_key(request, caller.key_id, body):
        await context.key_ring.check_active(caller.key_id)
    return SignedRequest(caller, body)
