"""The trading API's HTTP and WebSocket surface."""

from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from litestar import Litestar, Response, WebSocket, delete, get, post, websocket
from litestar.datastructures import State
from litestar.status_codes import HTTP_200_OK

from foretell.domain.errors.families import ForetellError, Unauthenticated
from foretell.domain.errors.http import (
    MalformedBody,
    NonceNotMonotonic,
    NoSuchCredentials,
    RevokedKey,
    SignedBeforeRevocation,
)
from foretell.domain.errors.order import KeyNotOwned, RequestTaken, TooManyApiKeys
from foretell.domain.errors.storage import ReadsBusy, WritesBusy
from foretell.edge.application import build_application
from foretell.edge.codec import CLIENT, PLACE, SINK, AnyRequest, JsonResponse, json_response
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.openapi import Api
from foretell.edge.documents.security import L1, L2, L2_IF_SIGNED
from foretell.edge.limits_route import LIMITS, limits_of
from foretell.edge.query import Query
from foretell.edge.refusals import Handler, handlers
from foretell.trading.accounts.accounts import AccountRecord, account_record
from foretell.trading.context import TradingContext
from foretell.trading.handlers import keys
from foretell.trading.refusals import DOCUMENTED, trading_body, trading_l1_body
from foretell.trading.routes import (
    batches,
    builder_keys,
    builder_trades,
    listings,
    notifications,
    placeholders,
    private,
    profiles,
    public,
    readonly_keys,
    refused,
    stream_events,
)
from foretell.trading.routes.dependencies import (
    Context,
    answer_once,
    authenticate,
    find_first_answer,
)
from foretell.trading.streams.connection import Socket
from foretell.trading.streams.document import asyncapi_document
from foretell.trading.wire.parameters import ADDRESS, API_KEY, INCLUDE_REVOKED, METADATA

TITLE: Final = "Foretell trading API"
ABOUT: Final = (
    "Order books, signed orders, trades and streams. Market data needs no authentication; keys are"
    " created with a wallet's signature (L1); everything else is signed with a key's secret (L2)."
    " Header names have the prefix SERVICE_."
)

ASYNCAPI_JSON: Final = "application/vnd.aai.asyncapi+json"

AnySocket = WebSocket[Any, Any, State]

_L1_REFUSALS: Final[dict[int | type[Exception], Handler]] = {
    Unauthenticated: handlers(trading_l1_body)[ForetellError]
}


@get(["/", "/ok"], opt=describe(Success(str, "OK"), tag=refused.STATUS))
async def get_root() -> JsonResponse:
    """Return OK."""
    return json_response("OK")


@get("/time", opt=describe(Success(int, "Seconds since 1970."), tag=refused.STATUS))
async def get_time(context: Context) -> JsonResponse:
    """Return the server's clock."""
    return json_response(context.now_ms() // 1000)


@get("/version", opt=describe(Success(dict[str, int], "The version."), tag=refused.STATUS))
async def get_version(context: Context) -> JsonResponse:
    """Return the version of the order struct to sign."""
    return json_response({"version": context.struct_version})


@post(
    "/auth/api-key",
    status_code=200,
    exception_handlers=_L1_REFUSALS,
    opt=describe(
        Success(keys.CredentialsRecord, "The credentials; no other response has them."),
        tag=refused.KEYS,
        security=L1,
        refusals=(NonceNotMonotonic, SignedBeforeRevocation, TooManyApiKeys, WritesBusy),
    ),
)
async def create_key(request: AnyRequest, context: Context) -> JsonResponse:
    """Create the credentials of a nonce, or return them again (L1)."""
    caller = context.key_ring.authenticate_l1(request.headers)
    return json_response(await keys.create_key(context, caller))


@get(
    "/auth/derive-api-key",
    exception_handlers=_L1_REFUSALS,
    opt=describe(
        Success(keys.CredentialsRecord, "The credentials."),
        tag=refused.KEYS,
        security=L1,
        refusals=(NoSuchCredentials, *refused.PUBLIC_READ, WritesBusy),
    ),
)
async def derive_key(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the credentials of a nonce that was created before (L1)."""
    caller = context.key_ring.authenticate_l1(request.headers)
    return json_response(await keys.derive_key(context, caller))


@get(
    "/auth/api-keys",
    opt=describe(
        Success(
            list[str | keys.KeyRecord] | keys.KeyList, "Key ids; objects with `metadata=true`."
        ),
        METADATA,
        INCLUDE_REVOKED,
        tag=refused.KEYS,
        security=L2,
    ),
)
async def list_keys(request: AnyRequest, context: Context) -> JsonResponse:
    """List the address's keys except those that were revoked (L2)."""
    caller, _ = await authenticate(request, context)
    query = Query.of(request)
    with_metadata = query.read(METADATA)
    query.read(INCLUDE_REVOKED)
    query.check_known()
    return json_response(await keys.list_keys(context, caller, with_metadata=with_metadata))


@delete(
    "/auth/api-key",
    status_code=200,
    opt=describe(
        Success(keys.Revocation | Literal["OK"], "Revoked."),
        API_KEY,
        tag=refused.KEYS,
        security=L2,
        refusals=(KeyNotOwned, MalformedBody, RequestTaken),
        is_keyed=True,
    ),
)
async def revoke_key(request: AnyRequest, context: Context) -> JsonResponse:
    """Revoke a key of the address at once, and close its streams (L2)."""
    query = Query.of(request)
    try:
        signed = await authenticate(request, context)
    except RevokedKey:
        first = await find_first_answer(request, context)
        if first is None:
            raise
        key_id = query.read(API_KEY)
    else:
        caller = signed.caller
        key_id = query.read(API_KEY) or caller.key_id
        query.check_known()
        keys.check_named(signed.body, key_id)
        revoke = partial(keys.revoke, context, caller, key_id)
        first = await answer_once(request, context, signed, revoke)
    if key_id is not None and first.status_code == HTTP_200_OK:
        signer_id = context.key_ring.key_id_of(request.headers)
        # The query, which names the key, is not signed.
        await keys.check_revoked(context, signer_id, key_id)
    return first


@get(
    "/auth/ban-status/closed-only",
    opt=describe(
        Success(dict[str, bool], "Always false: the address may open positions."),
        tag=refused.KEYS,
        security=L2,
    ),
)
async def get_closed_only(request: AnyRequest, context: Context) -> JsonResponse:
    """Return whether the address may only close positions: no address is restricted so (L2)."""
    await authenticate(request, context)
    return json_response({"closed_only": False, "closedOnly": False})


@get(
    "/auth/account",
    opt=describe(
        Success(AccountRecord, "Wallets, domains and nonces."),
        ADDRESS,
        tag=refused.KEYS,
        refusals=(ReadsBusy, *refused.CHAIN),
    ),
)
async def get_account(request: AnyRequest, context: Context) -> JsonResponse:
    """Return everything that a client needs to sign an order for an address."""
    query = Query.of(request)
    address = query.read(ADDRESS)
    query.check_known()
    return json_response(
        await account_record(
            context.deployment,
            context.wallets,
            context.account_chain,
            context.key_ring.rules,
            address,
        )
    )


@get("/limits", opt=describe(LIMITS, tag=refused.STATUS, security=L2_IF_SIGNED))
async def show_limits(request: AnyRequest, context: Context) -> JsonResponse:
    """Return how much of each rate limit the account that signed the request has used, or else the address."""
    is_signed = any(name.endswith("_api_key") for name in request.headers)
    caller = (await authenticate(request, context)).caller if is_signed else None
    return json_response(limits_of(request, caller.address if caller else None))


def _socket(socket: AnySocket) -> Socket:
    scope: Any = socket.scope
    client = scope.get(CLIENT, "")
    return Socket(socket.receive, socket.send, scope.get(SINK), client)


@websocket("/ws/market")
async def serve_market(socket: AnySocket, context: Context) -> None:
    """Publish books, prices, and the opening and resolution of markets."""
    await context.streams.serve_market(_socket(socket))


@websocket("/ws/user")
async def serve_user(socket: AnySocket, context: Context) -> None:
    """Publish an account's orders and trades."""
    place: Any = socket.scope.get(PLACE)
    await context.streams.serve_user(_socket(socket), place)


@websocket("/ws")
async def serve_live(socket: AnySocket, context: Context) -> None:
    """Publish trades of all markets, by topic."""
    await context.streams.serve_live(_socket(socket))


@websocket("/sports/ws")
async def serve_sports(socket: AnySocket, context: Context) -> None:
    """Publish games as they are created, start and end."""
    await context.streams.serve_sports(_socket(socket))


@get("/schema/asyncapi.json", sync_to_thread=True)
def get_asyncapi() -> JsonResponse:
    """Return the AsyncAPI document of the streams."""
    return Response(msgspec.json.encode(asyncapi_document()), media_type=ASYNCAPI_JSON)


ROUTES: Final = (
    get_asyncapi,
    get_root,
    get_time,
    get_version,
    create_key,
    derive_key,
    list_keys,
    revoke_key,
    get_closed_only,
    get_account,
    serve_market,
    serve_user,
    serve_live,
    serve_sports,
    stream_events.get_events,
    *public.ROUTES,
    *batches.ROUTES,
    *listings.ROUTES,
    *notifications.ROUTES,
    *private.ROUTES,
    *profiles.ROUTES,
    *readonly_keys.ROUTES,
    *builder_keys.ROUTES,
    *builder_trades.ROUTES,
    *placeholders.ROUTES,
)


def build_app(context: TradingContext, npm_folder: Path | None = None) -> Litestar:
    """Return the API as an application of its own, its paths starting at /."""
    return build_application(
        api=Api("trading", TITLE, ABOUT, DOCUMENTED),
        routes=ROUTES,
        context=context,
        body_of=trading_body,
        npm_folder=npm_folder,
        limits_route=show_limits,
    )
