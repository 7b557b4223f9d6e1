"""The application of a product: its routes, its context, its refusals and its OpenAPI document."""

from collections.abc import Callable, Sequence
from typing import Any

from litestar import Litestar
from litestar.types import ControllerRouterHandler

from foretell.domain.errors.families import ForetellError
from foretell.edge.injection import context_dependency, state_with
from foretell.edge.openapi import DecimalsAreNumbers, documented
from foretell.edge.query import check_taken
from foretell.edge.refusals import handlers

BodyOf = Callable[[ForetellError], tuple[int, object]]
"""The status and the body with which a product refuses."""


def build_application(
    *,
    title: str,
    about: str,
    routes: Sequence[ControllerRouterHandler],
    context: object,
    body_of: BodyOf,
    **options: Any,
) -> Litestar:
    """Return an API as an application of its own, its paths starting at /.

    Bodies are bounded where they are read (`codec.read_body`), not by the framework.
    """
    return Litestar(
        route_handlers=routes,
        state=state_with(context),
        dependencies=context_dependency(),
        before_request=check_taken,
        exception_handlers=handlers(body_of),
        openapi_config=documented(title, about),
        plugins=[DecimalsAreNumbers()],
        request_max_body_size=None,
        logging_config=None,
        **options,
    )
