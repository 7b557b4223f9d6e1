"""Routes of the web app: its page and files, its configuration, and the sandbox's wallets.

The OpenAPI document describes those that answer in JSON; `/docs` is the documentation's site.
"""

from typing import Final

import msgspec
from litestar import Litestar, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from foretell.domain.errors.chain import (
    ChainInconsistent,
    ChainUnavailable,
    ExecutionReverted,
    RpcRefused,
)
from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.http import UnknownRoute
from foretell.domain.errors.web import UnknownWallet, WalletBusy
from foretell.edge.application import begin_request, naming_client
from foretell.edge.codec import NOT_STORED, AnyRequest, JsonResponse, decode, read_body
from foretell.edge.documents.description import Success, describe, description_of
from foretell.edge.documents.errors import PUBLIC_READ
from foretell.edge.documents.openapi import Api, described_by
from foretell.edge.documents.pages import get_document
from foretell.edge.documents.security import OPERATOR, SANDBOX
from foretell.edge.injection import context_dependency, state_with
from foretell.edge.refusals import handlers
from foretell.web.build_files import ASKED_AGAIN, ASSETS, INDEX
from foretell.web.configuration import WebConfiguration
from foretell.web.context import WebContext
from foretell.web.file_response import file_response
from foretell.web.operation import InstallationState
from foretell.web.refusals import DOCUMENTED, web_body
from foretell.web.sandbox_wallets import (
    ChainAnswer,
    ChainRequest,
    SandboxWallets,
    SendRequest,
    SentTransaction,
    Signature,
    SignRequest,
    Visitor,
    WalletAccount,
)
from foretell.web.site.routes import site_routes

PAGES: Final = (
    "/",
    "/event/{slug:str}",
    "/portfolio",
    "/portfolio/{address:str}",
    "/leaderboard",
    "/create",
    "/resolve",
    "/operator",
)
"""The paths of the app's own pages: each gets the same document, whose script reads the path."""
MISSING: Final = (
    "The web app is not built: run make run. The APIs are at /clob, /create-market, /relayer, /data and"
    " /discovery.\n"
)
SANDBOX_BODY_BYTES_MAX: Final = 128 * 1024
FORM: Final = "Bearer "

TITLE: Final = "Foretell web app"
ABOUT: Final = (
    "What the web app reads of its own server: the addresses of the APIs, the wallets of a sandbox, which sign on the"
    " server, and the state of the installation for its operator. An installation that has no sandbox or no operator's"
    " token lacks those routes."
)
CHAIN_FAULTS: Final = (ChainUnavailable, ChainInconsistent, RpcRefused)

Context = NamedDependency[WebContext]


@get(list(PAGES), sync_to_thread=False)
def get_page(
    request: AnyRequest,
    context: Context,
    slug: FromPath[str] = "",
    address: FromPath[str] = "",
) -> Response[bytes]:
    """Return the app's document."""
    del slug, address
    file = context.files.get(INDEX)
    if file is None:
        return Response(MISSING.encode(), media_type="text/plain")
    return file_response(request, file, context.policy)


@get("/assets/{name:str}", sync_to_thread=True)
def get_asset(request: AnyRequest, context: Context, name: FromPath[str]) -> Response[bytes]:
    """Return a script, a style or a font."""
    file = context.files.get(ASSETS + name)
    if file is None:
        raise UnknownRoute(f"the web app has no file {name[:100]}")
    return file_response(request, file)


@get("/favicon.svg", sync_to_thread=False)
def get_icon(request: AnyRequest, context: Context) -> Response[bytes]:
    """Return the app's icon."""
    file = context.files.get("favicon.svg")
    if file is None:
        raise UnknownRoute("the web app has no icon")
    return file_response(request, file)


@get(
    "/config.json",
    sync_to_thread=False,
    opt=describe(Success(WebConfiguration, "The configuration."), tag="Configuration"),
)
def get_configuration(context: Context) -> JsonResponse:
    """Return the addresses of the APIs and contracts."""
    content = msgspec.json.encode(context.configuration)
    headers = {"cache-control": ASKED_AGAIN}
    return Response(content, media_type="application/json", headers=headers)


@get(
    "/sandbox/accounts",
    sync_to_thread=False,
    opt=describe(
        Success(list[WalletAccount], "The wallets, traders first."), tag="Sandbox", security=SANDBOX
    ),
)
def get_accounts(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the sandbox's wallets."""
    return _answer(_wallets(request, context).accounts())


@post(
    "/sandbox/sign",
    status_code=200,
    opt=describe(
        Success(Signature, "The signature."),
        tag="Sandbox",
        body=SignRequest,
        security=SANDBOX,
        refusals=(MalformedHex, UnknownWallet),
    ),
)
async def sign(request: AnyRequest, context: Context) -> JsonResponse:
    """Sign a digest by a wallet of the sandbox."""
    wallets = _wallets(request, context)
    body = decode(await read_body(request), SignRequest)
    return _answer(Signature(wallets.sign(body)))


@post(
    "/sandbox/send",
    status_code=200,
    opt=describe(
        Success(SentTransaction, "The transaction's hash."),
        tag="Sandbox",
        body=SendRequest,
        security=SANDBOX,
        refusals=(MalformedHex, UnknownWallet, WalletBusy, ExecutionReverted, *CHAIN_FAULTS),
    ),
)
async def send(request: AnyRequest, context: Context) -> JsonResponse:
    """Send a transaction of a wallet of the sandbox."""
    wallets = _wallets(request, context)
    body = decode(await read_body(request, SANDBOX_BODY_BYTES_MAX), SendRequest)
    return _answer(SentTransaction(await wallets.send(body)))


@post(
    "/sandbox/chain",
    status_code=200,
    opt=describe(
        Success(ChainAnswer, "The chain's answer."),
        tag="Sandbox",
        body=ChainRequest,
        security=SANDBOX,
        refusals=(ExecutionReverted, *CHAIN_FAULTS),
    ),
)
async def ask_chain(request: AnyRequest, context: Context) -> JsonResponse:
    """Ask the sandbox's chain."""
    wallets = _wallets(request, context)
    body = decode(await read_body(request, SANDBOX_BODY_BYTES_MAX), ChainRequest)
    return _answer(ChainAnswer(await wallets.ask(body)))


@get(
    "/operator/status",
    opt=describe(
        Success(InstallationState, "The state."),
        tag="Operator",
        security=OPERATOR,
        refusals=(*PUBLIC_READ, *CHAIN_FAULTS),
    ),
)
async def get_state(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the state of the installation to its operator."""
    assert context.operation is not None, "the route is an installation's with a token"
    context.operation.check(_bearer(request))
    return _answer(await context.operation.state())


ROUTES: Final = (get_page, get_asset, get_icon, get_configuration, get_document)
SANDBOX_ROUTES: Final = (get_accounts, sign, send, ask_chain)


def build_app(context: WebContext | None) -> Litestar:
    """Return the application of the web app; only a sandbox's has routes for wallets.

    Without a context it has every route, for its document.
    """
    has_wallets = context is None or context.wallets is not None
    has_operation = context is None or context.operation is not None
    return Litestar(
        route_handlers=[
            *ROUTES,
            *site_routes(),
            *(SANDBOX_ROUTES if has_wallets else ()),
            *([get_state] if has_operation else ()),
        ],
        state=state_with(context),
        dependencies=context_dependency(),
        before_request=_begin,
        middleware=[naming_client],
        exception_handlers=handlers(web_body),
        opt=described_by(Api("web", TITLE, ABOUT, DOCUMENTED)),
        openapi_config=None,
        request_max_body_size=None,
        logging_config=None,
    )


async def _begin(request: AnyRequest) -> None:
    """Count a request of a documented route, and check that it has no unknown parameters."""
    if description_of(request.route_handler).is_shown:
        await begin_request(request)


def _wallets(request: AnyRequest, context: WebContext) -> SandboxWallets:
    """Return the sandbox's wallets to its own page, or refuse."""
    assert context.wallets is not None, "the routes are a sandbox's"
    headers = request.headers
    visitor = Visitor(headers.get("host", ""), headers.get("origin"), _bearer(request))
    context.wallets.check(visitor)
    return context.wallets


def _bearer(request: AnyRequest) -> str:
    return request.headers.get("authorization", "").removeprefix(FORM)


def _answer(value: object) -> JsonResponse:
    content = msgspec.json.encode(value)
    return Response(content, media_type="application/json", headers=NOT_STORED)
