"""The header by which a client names a request, so that it is carried out once however often it is sent."""

import re
from typing import Final

from litestar import Response

from foretell.domain.errors.http import MalformedIdempotencyKey
from foretell.edge.codec import AnyRequest, JsonResponse, json_response, sent_method, sent_path
from foretell.edge.signed_requests import Act, SignedRequests, keyed_identity
from foretell.store.signed_requests import StoredAnswer

HEADER: Final = "idempotency-key"
KEY_CHARACTERS_MAX: Final = 128

_KEY: Final = re.compile(rf"[!-~]{{1,{KEY_CHARACTERS_MAX}}}\Z")


def idempotency_key(request: AnyRequest) -> str | None:
    """Return the key that a client gave to its request, or None."""
    values = request.headers.getall(HEADER, ())
    if not values:
        return None
    if len(values) > 1 or not _KEY.match(values[0]):
        raise MalformedIdempotencyKey(KEY_CHARACTERS_MAX)
    return values[0]


async def answer_keyed(
    request: AnyRequest, requests: SignedRequests, client: str, content: bytes, act: Act
) -> JsonResponse:
    """Return the answer to a client's request, which is carried out once if the request has a key.

    A client is who was authenticated, or where requests come from: keys of others have no meaning for it.
    """
    key = idempotency_key(request)
    if key is None:
        answer = await act()
        return response_of(answer) if isinstance(answer, StoredAnswer) else json_response(answer)
    target = f"{sent_method(request)} {sent_path(request)}?{request.scope['query_string'].decode('latin-1')}"
    identity = keyed_identity(client, key, target.encode() + b"\n" + content, requests.now_ms())
    return response_of(await requests.answer(identity, act))


def response_of(answer: StoredAnswer) -> JsonResponse:
    """Return a stored answer as a response."""
    return Response(answer.body.encode(), status_code=answer.status, media_type="application/json")
