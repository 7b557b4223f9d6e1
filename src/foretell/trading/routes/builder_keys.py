"""Routes of builders' keys."""

from functools import partial
from typing import Final, Literal

from litestar import delete, get, post

from foretell.domain.errors.builders import TooManyBuilderKeys
from foretell.domain.errors.order import KeyNotOwned, RequestTaken
from foretell.edge.builder_requests import is_of_builder_alone
from foretell.edge.codec import AnyRequest, JsonResponse, json_response
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.security import L2, L2_OR_BUILDER
from foretell.edge.idempotency import idempotency_key
from foretell.edge.parameters import text
from foretell.edge.query import Query
from foretell.trading.handlers import builder_keys
from foretell.trading.routes import refused
from foretell.trading.routes.dependencies import (
    Context,
    answer_named,
    answer_once,
    authenticate,
    authenticate_builder,
)

KEY: Final = text(
    "key", "the builder's key to delete; if absent the calling one, with L2 headers the newest"
)


@post(
    "/auth/builder-api-key",
    status_code=200,
    opt=describe(
        Success(builder_keys.BuilderCredentials, "The set; no other response has it."),
        tag=refused.KEYS,
        security=L2,
        refusals=(TooManyBuilderKeys,),
        is_keyed=True,
    ),
)
async def create_builder_key(request: AnyRequest, context: Context) -> JsonResponse:
    """Create a builder's key, which attributes orders and reads its own trades (L2)."""
    caller, _ = await authenticate(request, context)
    named = idempotency_key(request)
    signature = context.key_ring.signature_of(request.headers)
    name = f"signature {signature}" if named is None else f"name {named}"
    return json_response(await builder_keys.create_builder_key(context, caller, name))


@get(
    "/auth/builder-api-key",
    opt=describe(
        Success(list[builder_keys.BuilderKeyRecord], "The keys, without their secrets."),
        tag=refused.KEYS,
        security=L2,
    ),
)
async def get_builder_keys(request: AnyRequest, context: Context) -> JsonResponse:
    """List the address's builder's keys, the oldest first (L2)."""
    caller, _ = await authenticate(request, context)
    return json_response(await builder_keys.list_builder_keys(context, caller.address))


@delete(
    "/auth/builder-api-key",
    status_code=200,
    opt=describe(
        Success(Literal["OK"], "Deleted."),
        KEY,
        tag=refused.KEYS,
        security=L2_OR_BUILDER,
        refusals=(KeyNotOwned, RequestTaken),
        is_keyed=True,
    ),
)
async def delete_builder_key(request: AnyRequest, context: Context) -> JsonResponse:
    """Delete a builder's key at once: the calling one, or under L2 any of the address (builder or L2)."""
    query = Query.of(request)
    named = query.read(KEY)
    query.check_known()
    if is_of_builder_alone(context.key_ring, request.headers):
        signed = await authenticate_builder(request, context)
        address, key_id = signed.caller.address, signed.caller.key_id
        if named not in {None, key_id}:
            raise KeyNotOwned  # the query is not signed, so the same headers could name every key
        remove = partial(builder_keys.remove_builder_key, context, address, key_id)
        return await answer_named(request, context, signed, remove)
    signed = await authenticate(request, context)
    address = signed.caller.address
    if named is None:
        remove = partial(builder_keys.remove_newest_builder_key, context, address)
        return await answer_once(request, context, signed, remove)
    remove = partial(builder_keys.remove_builder_key, context, address, named)
    first = await answer_once(request, context, signed, remove)
    await builder_keys.check_deleted(context, address, named)  # the query is not signed
    return first


ROUTES: Final = (create_builder_key, get_builder_keys, delete_builder_key)
