"""The application of a product: its routes, its context, its refusals and its documents."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from litestar import Litestar, Response
from litestar.types import ASGIApp, ControllerRouterHandler, Receive, Scope, Send

from foretell.edge.codec import AnyRequest
from foretell.edge.documents.openapi import Api, described_by
from foretell.edge.documents.pages import document_routes
from foretell.edge.injection import context_dependency, state_with
from foretell.edge.limits_route import show_limits
from foretell.edge.query import check_no_parameters
from foretell.edge.refusals import BodyOf, handlers, with_head
from foretell.edge.throttled_application import address_in, count_for_address
from foretell.store.public_reads.places import answering

ALLOW: Final = "Allow"


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
        after_request=name_methods,
        middleware=[naming_client],
        exception_handlers=handlers(body_of),
        opt=described_by(api),
        openapi_config=None,
        request_max_body_size=None,
        logging_config=None,
    )


async def begin_request(request: AnyRequest) -> None:
    """Count a request and wait for its turn, then check its parameters if its route takes none."""
    await count_for_address(request)
    await check_no_parameters(request)


async def name_methods(response: Response[Any]) -> Response[Any]:
    """Add HEAD to the methods in the framework's answer to OPTIONS."""
    allowed = response.headers.get(ALLOW)
    if allowed is not None:
        response.headers[ALLOW] = ", ".join(with_head(allowed))
    return response


def naming_client(app: ASGIApp) -> ASGIApp:
    """Return an application whose requests and streams are answered in the name of their client.

    So their reads have places of that client, and each of their transactions has a deadline.
    """

    async def named(scope: Scope, receive: Receive, send: Send) -> None:
        with answering(address_in(scope)):
            await app(scope, receive, send)

    return named
