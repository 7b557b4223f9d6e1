"""The application of a product: its routes, its context, its refusals and its OpenAPI document."""

from collections.abc import Sequence
from typing import Any

from litestar import Litestar
from litestar.types import ControllerRouterHandler

from foretell.edge.codec import AnyRequest
from foretell.edge.injection import context_dependency, state_with
from foretell.edge.limits_route import show_limits
from foretell.edge.openapi import DecimalsAreNumbers, openapi_config
from foretell.edge.query import check_no_parameters
from foretell.edge.refusals import BodyOf, handlers
from foretell.edge.throttled_application import count_for_address


def build_application(
    *,
    title: str,
    about: str,
    routes: Sequence[ControllerRouterHandler],
    context: object,
    body_of: BodyOf,
    limits_route: ControllerRouterHandler = show_limits,
    **options: Any,
) -> Litestar:
    """Return the application of an API, its paths starting at /.

    Bodies are limited where they are read (`codec.read_body`), not by the framework.
    """
    return Litestar(
        route_handlers=[*routes, limits_route],
        state=state_with(context),
        dependencies=context_dependency(),
        before_request=_begin,
        exception_handlers=handlers(body_of),
        openapi_config=openapi_config(title, about),
        plugins=[DecimalsAreNumbers()],
        request_max_body_size=None,
        logging_config=None,
        **options,
    )


async def _begin(request: AnyRequest) -> None:
    """Count a request and wait for its turn, then check its parameters if its route takes none."""
    await count_for_address(request)
    await check_no_parameters(request)
