"""One application a product in a test process: making its routes costs more than most tests do."""

import copy
import functools
from collections.abc import Callable
from typing import Any

from litestar import Litestar

from foretell.edge.injection import state_with

BuildApp = Callable[[Any], Litestar]


def an_app(build_app: BuildApp, context: object) -> Litestar:
    """Return the product's application over these services; others keep theirs."""
    app = copy.copy(_routed(build_app))
    app.state = state_with(context)
    return app


@functools.cache
def _routed(build_app: BuildApp) -> Litestar:
    return build_app(None)
