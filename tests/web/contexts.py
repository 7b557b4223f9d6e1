"""Contexts of the web app's server, and clients of it whose answers are checked against its document."""

import functools
from collections.abc import Callable
from typing import Any

import httpx
from litestar import Litestar
from tests.rigs.applications import an_app
from tests.rigs.values import CHAIN_ID

from foretell.edge.security_headers import SecureApplication
from foretell.web.configuration import ApiUrls, WebConfiguration
from foretell.web.context import WebContext
from foretell.web.routes import build_app

TOKEN = "5a" * 32
OPERATOR_TOKEN = "7c" * 32
HOST = "127.0.0.1:8000"


def a_configuration(chain_id: int = CHAIN_ID, **changes: Any) -> WebConfiguration:
    """Return a sandbox's configuration, whose APIs are on the page's own host."""
    fields: dict[str, Any] = {
        "version": "1",
        "chain_id": chain_id,
        "is_sandbox": True,
        "chain_url": None,
        "images_url": f"http://{HOST}/create-market",
        "apis": ApiUrls(),
        "contracts": {},
        "safe_factory_name": "",
    }
    return WebConfiguration(**fields | changes)


def client_of(context: WebContext) -> httpx.AsyncClient:
    """Return a client of an installation with this context."""
    build = _builder(context.wallets is not None, context.operation is not None)
    app = SecureApplication(an_app(build, context))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=f"http://{HOST}")


@functools.cache
def _builder(has_wallets: bool, has_operation: bool) -> Callable[[Any], Litestar]:  # noqa: FBT001 - a key
    """Return what builds the routes of such an installation; they are built once for all tests."""
    kind: Any = object()
    context = WebContext(
        {},
        a_configuration(),
        "",
        kind if has_wallets else None,
        kind if has_operation else None,
    )
    return lambda _: build_app(context)
