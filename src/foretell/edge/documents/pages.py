"""Routes of the documents: `/schema/openapi.json`, and `/docs`, a page that shows it.

The page and its script come from this server alone: a header forbids the browser every other host.
"""

import base64
import functools
import hashlib
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from litestar import Litestar, MediaType, Request, Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.plugins import ScalarRenderPlugin
from typing_extensions import override

from foretell.domain.errors.http import UnknownRoute
from foretell.edge.codec import AnyRequest
from foretell.edge.documents.openapi import document_of
from foretell.runtime.shared_calls import SharedCalls
from foretell.runtime.threads import run_in_thread

Made = TypeVar("Made")

SCRIPT: Final = Path("@scalar") / "api-reference" / "dist" / "browser" / "standalone.js"
"""The script of the page, in the folder where npm installs packages."""
OPENAPI_JSON: Final = "application/vnd.oai.openapi+json"
LASTING: Final = "public, max-age=604800"
MISSING: Final = (
    "The script of this page is not installed: run make run, or set FORETELL_NPM_FOLDER. The document"
    " itself is at schema/openapi.json.\n"
)
OPTIONS: Final = {
    "withDefaultFonts": False,
    "telemetry": False,
    "hideClientButton": True,
    "showDeveloperTools": "never",
    "agent": {"disabled": True},
    "mcp": {"disabled": True},
}
_CALLS: Final = "calls for documents"
_PAGE: Final = "page"
_SCRIPT: Final = "script of the page"
_ENCODED: Final = "encoded document"
"""Names in the options of an application: what is made once is the same for each host and prefix."""
_INLINE: Final = re.compile(rb"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL)
_CONFIGURE: Final = (
    "document.getElementById('api-reference').dataset.configuration ="
    f" '{msgspec.json.encode(OPTIONS).decode()}'"
)


class DocumentPage(ScalarRenderPlugin):
    """The page of one API; its addresses are relative, so they are right under a prefix too."""

    def __init__(self) -> None:
        favicon = '<link rel="icon" href="data:,">'
        super().__init__(js_url="docs/script.js", css_url="data:text/css,", favicon=favicon)

    @staticmethod
    @override
    def get_openapi_json_route(request: Request[Any, Any, Any]) -> str:
        """Return where the document is, seen from the page."""
        return "schema/openapi.json"

    @override
    def render_options(self) -> str:
        """Return the one script within the page."""
        return f"<script>{_CONFIGURE}</script>"


def page_policy(html: bytes) -> str:
    """Return the header that forbids every other host, and every script but ours and those within the page."""
    hashes = {
        f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
        for script in _INLINE.findall(html)
    }
    return (
        f"default-src 'none'; script-src 'self' {' '.join(sorted(hashes))};"
        " style-src 'self' 'unsafe-inline' data:; img-src 'self' data: blob:; font-src 'self' data:;"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class RenderedPage(NamedTuple):
    """The rendered page, and the header that goes with it."""

    html: bytes
    policy: str


def document_routes(npm_folder: Path | None) -> list[HTTPRouteHandler]:
    """Return the routes of an API's document and of its page."""
    script = None if npm_folder is None else npm_folder / SCRIPT
    page = DocumentPage()

    def render(request: AnyRequest) -> RenderedPage | None:
        if script is None or not script.is_file():
            return None
        html = page.render(request, document_of(request.app))
        return RenderedPage(html, page_policy(html))

    @get("/docs")
    async def get_page(request: AnyRequest) -> Response[bytes]:
        made = await made_once(request.app, _PAGE, partial(render, request))
        if made is None:
            return Response(MISSING.encode(), media_type=MediaType.TEXT)
        headers = {"content-security-policy": made.policy}
        return Response(made.html, media_type=MediaType.HTML, headers=headers)

    @get("/docs/script.js")
    async def get_script(request: AnyRequest) -> Response[bytes]:
        content = await made_once(request.app, _SCRIPT, partial(_content_of, script))
        if content is None:
            raise UnknownRoute("the script of /docs is not installed")
        headers = {"cache-control": LASTING}
        return Response(content, media_type="text/javascript", headers=headers)

    return [get_document, get_page, get_script]


def _content_of(script: Path | None) -> bytes | None:
    return None if script is None or not script.is_file() else _content(script)


@functools.cache
def _content(script: Path) -> bytes:
    """Return the script: it is read once, and all requests for it, at every API, share the bytes."""
    return script.read_bytes()


@get("/schema/openapi.json")
async def get_document(request: AnyRequest) -> Response[bytes]:
    """Return the OpenAPI document."""
    content = await made_once(request.app, _ENCODED, partial(_encoded, request.app))
    assert content is not None, "every application has a document"
    return Response(content, media_type=OPENAPI_JSON)


def _encoded(app: Litestar) -> bytes:
    return msgspec.json.encode(document_of(app))


async def made_once(app: Litestar, name: str, make: Callable[[], Made | None]) -> Made | None:
    """Return what `make` returns for an application, in a thread and once, however many ask; None is not kept.

    A thread that made it for each request would hold the interpreter beside orders.
    """
    kept: Made | None = app.opt.get(name)
    if kept is None:
        calls: SharedCalls = app.opt.setdefault(_CALLS, SharedCalls())
        kept = app.opt[name] = await calls.result(name, partial(run_in_thread, make))
    return kept
