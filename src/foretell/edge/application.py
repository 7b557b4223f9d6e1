"""The application of a product: its routes, its context, its refusals and its OpenAPI document."""

from collections.abc import Sequence
from typing import Any

from litestar import Litestar
from litestar.types import ControllerRouterHandler

from foretell.edge.injection import context_dependency, state_with
from foretell.edge.openapi import DecimalsAreNumbers, openapi_config
from foretell.edge.query import check_no_parameters
from foretell.edge.refusals import BodyOf, handlers


def build_application(
    *,
    title: str,
    about: str,
    routes: Sequence[ControllerRouterHandler],
    context: object,
    body_of: BodyOf,
    **options: Any,
) -> Litestar:
    """Return the application of an API, its paths starting at /.

    Bodies are limited where they are read (`codec.read_body`), not by the framework.
    """
    return Litestar(
        route_handlers=routes,
        state=state_with(context),
        dependencies=context_dependency(),
        before_request=check_no_parameters,
        exception_handlers=handlers(body_of),
        openapi_config=openapi_config(title, about),
        plugins=[DecimalsAreNumbers()],
        request_max_body_size=None,
        logging_config=None,
        **options,
    )
