"""One application per product in a test process, because building its routes is slow."""

import copy
import functools
from collections.abc import Callable
from typing import Any

from litestar import Litestar

from foretell.edge.injection import state_with

BuildApp = Callable[[Any], Litestar]


def an_app(build_app: BuildApp, context: object) -> Litestar:
    """Return the product's application with this context; other applications keep theirs."""
    app = copy.copy(_routed(build_app))
    app.state = state_with(context)
    return app


def openapi_document(build_app: BuildApp) -> dict[str, Any]:
    """Return the OpenAPI document of a product."""
    return _routed(build_app).openapi_schema.to_schema()


@functools.cache
def _routed(build_app: BuildApp) -> Litestar:
    return build_app(None)
