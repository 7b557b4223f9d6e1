"""Routes of the web app: its page and files, its configuration, and the sandbox's wallets."""

from typing import Final

import msgspec
from litestar import Litestar, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from foretell.domain.errors.http import UnknownRoute
from foretell.edge.codec import NOT_STORED, AnyRequest, JsonResponse, decode, read_body
from foretell.edge.injection import context_dependency, state_with
from foretell.edge.refusals import handlers
from foretell.web.build_files import ASKED_AGAIN, ASSETS, INDEX
from foretell.web.context import WebContext
from foretell.web.file_response import file_response
from foretell.web.refusals import web_body
from foretell.web.sandbox_wallets import (
    ChainRequest,
    SandboxWallets,
    SendRequest,
    SignRequest,
    Visitor,
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


@get("/config.json", sync_to_thread=False)
def get_configuration(context: Context) -> JsonResponse:
    """Return the addresses of the APIs and contracts."""
    content = msgspec.json.encode(context.configuration)
    headers = {"cache-control": ASKED_AGAIN}
    return Response(content, media_type="application/json", headers=headers)


@get("/sandbox/accounts", sync_to_thread=False)
def get_accounts(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the sandbox's wallets."""
    return _answer(_wallets(request, context).accounts())


@post("/sandbox/sign", status_code=200)
async def sign(request: AnyRequest, context: Context) -> JsonResponse:
    """Sign a digest by a wallet of the sandbox."""
    wallets = _wallets(request, context)
    body = decode(await read_body(request), SignRequest)
    return _answer({"signature": wallets.sign(body)})


@post("/sandbox/send", status_code=200)
async def send(request: AnyRequest, context: Context) -> JsonResponse:
    """Send a transaction of a wallet of the sandbox."""
    wallets = _wallets(request, context)
    body = decode(await read_body(request, SANDBOX_BODY_BYTES_MAX), SendRequest)
    return _answer({"hash": await wallets.send(body)})


@post("/sandbox/chain", status_code=200)
async def ask_chain(request: AnyRequest, context: Context) -> JsonResponse:
    """Ask the sandbox's chain."""
    wallets = _wallets(request, context)
    body = decode(await read_body(request, SANDBOX_BODY_BYTES_MAX), ChainRequest)
    return _answer({"result": await wallets.ask(body)})


@get("/operator/status")
async def get_state(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the state of the installation to its operator."""
    assert context.operation is not None, "the route is an installation's with a token"
    context.operation.check(_bearer(request))
    return _answer(await context.operation.state())


ROUTES: Final = (get_page, get_asset, get_icon, get_configuration)
SANDBOX_ROUTES: Final = (get_accounts, sign, send, ask_chain)


def build_app(context: WebContext) -> Litestar:
    """Return the application of the web app; only a sandbox's has routes for wallets."""
    return Litestar(
        route_handlers=[
            *ROUTES,
            *site_routes(),
            *(SANDBOX_ROUTES if context.wallets is not None else ()),
            *([get_state] if context.operation is not None else ()),
        ],
        state=state_with(context),
        dependencies=context_dependency(),
        exception_handlers=handlers(web_body),
        openapi_config=None,
        request_max_body_size=None,
        logging_config=None,
    )


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
