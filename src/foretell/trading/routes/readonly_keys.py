"""Routes of read-only keys."""

from functools import partial
from typing import Final

from litestar import delete, get, post

from foretell.domain.errors.http import MalformedBody
from foretell.domain.errors.order import KeyNotOwned, RequestTaken, TooManyReadonlyKeys
from foretell.edge.codec import NOT_STORED, AnyRequest, JsonResponse, decode, json_response
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.security import L2
from foretell.edge.idempotency import idempotency_key
from foretell.edge.parameters import required_text
from foretell.edge.query import Query
from foretell.trading.handlers import readonly_keys
from foretell.trading.routes import refused
from foretell.trading.routes.dependencies import Context, answer_named, authenticate
from foretell.trading.wire.parameters import ADDRESS

KEY: Final = required_text("key", "a read-only key")


@post(
    "/auth/readonly-api-key",
    status_code=200,
    opt=describe(
        Success(readonly_keys.ReadonlyKeyRecord, "The key."),
        tag=refused.KEYS,
        security=L2,
        refusals=(TooManyReadonlyKeys, RequestTaken),
        is_keyed=True,
    ),
)
async def create_readonly_key(request: AnyRequest, context: Context) -> JsonResponse:
    """Create a key that reads the address's orders, trades and notifications (L2)."""
    caller, _ = await authenticate(request, context)
    name = idempotency_key(request)
    return json_response(await readonly_keys.create_readonly_key(context, caller, name))


@get(
    "/auth/readonly-api-keys",
    opt=describe(Success(list[str], "The keys."), tag=refused.KEYS, security=L2),
)
async def list_readonly_keys(request: AnyRequest, context: Context) -> JsonResponse:
    """List the address's read-only keys, the oldest first (L2)."""
    caller, _ = await authenticate(request, context)
    answer = json_response(await readonly_keys.list_readonly_keys(context, caller.address))
    answer.headers.update(NOT_STORED)
    return answer


@delete(
    "/auth/readonly-api-key",
    status_code=200,
    opt=describe(
        Success(readonly_keys.DeletedKey | bool, "Deleted."),
        tag=refused.KEYS,
        security=L2,
        body=readonly_keys.ReadonlyKeyBody,
        refusals=(KeyNotOwned, MalformedBody),
        is_keyed=True,
    ),
)
async def delete_readonly_key(request: AnyRequest, context: Context) -> JsonResponse:
    """Delete a read-only key of the address at once (L2)."""
    signed = await authenticate(request, context)
    key = decode(signed.body, readonly_keys.ReadonlyKeyBody).key
    remove = partial(readonly_keys.remove_readonly_key, context, signed.caller, key)
    return await answer_named(request, context, signed, remove)


@get(
    "/auth/validate-readonly-api-key",
    opt=describe(
        Success(dict[str, bool], "Whether the address has the key."),
        ADDRESS,
        KEY,
        tag=refused.KEYS,
        refusals=refused.PUBLIC_READ,
    ),
)
async def validate_readonly_key(request: AnyRequest, context: Context) -> JsonResponse:
    """Return whether a read-only key is one of an address."""
    query = Query.of(request)
    address, key = query.read(ADDRESS), query.read(KEY)
    query.check_known()
    return json_response({"valid": await context.key_ring.is_readonly_key(address, key)})


ROUTES: Final = (
    create_readonly_key,
    list_readonly_keys,
    delete_readonly_key,
    validate_readonly_key,
)
