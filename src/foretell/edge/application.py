"""The application of a product: its routes, its context, its refusals and its documents."""

from collections.abc import Sequence
from pathlib import Path

from litestar import Litestar
from litestar.types import ControllerRouterHandler

from foretell.edge.codec import AnyRequest
from foretell.edge.documents.openapi import Api, described_by
from foretell.edge.documents.pages import document_routes
from foretell.edge.injection import context_dependency, state_with
from foretell.edge.limits_route import show_limits
from foretell.edge.query import check_no_parameters
from foretell.edge.refusals import BodyOf, handlers
from foretell.edge.throttled_application import address_of, count_for_address
from foretell.store.read_places import client_name


def build_application(
    *,
    api: Api,
    routes: Sequence[ControllerRouterHandler],
    context: object,
    body_of: BodyOf,
    npm_folder: Path | None = None,
    limits_route: ControllerRouterHandler = show_limits,
) -> Litestar:
    """Return the application of an API, its paths starting at /.

    Bodies are limited where they are read (`codec.read_body`), not by the framework.
    """
    return Litestar(
        route_handlers=[*routes, limits_route, *document_routes(npm_folder)],
        state=state_with(context),
        dependencies=context_dependency(),
        before_request=begin_request,
        exception_handlers=handlers(body_of),
        opt=described_by(api),
        openapi_config=None,
        request_max_body_size=None,
        logging_config=None,
    )


async def begin_request(request: AnyRequest) -> None:
    """Count a request and wait for its turn, then check its parameters if its route takes none."""
    client_name.set(address_of(request))
    await count_for_address(request)
    await check_no_parameters(request)
