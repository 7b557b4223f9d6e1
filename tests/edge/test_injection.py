import httpx
import pytest
from litestar import Litestar, get
from litestar.di import NamedDependency
from tests.rigs.applications import an_app

from foretell.edge.injection import context_dependency, state_with

pytestmark = pytest.mark.anyio

Context = NamedDependency[list[str]]


@get("/first")
async def get_first(context: Context) -> str:
    return context[0]


def build_app(context: list[str]) -> Litestar:
    return Litestar(
        [get_first],
        state=state_with(context),
        dependencies=context_dependency(),
        logging_config=None,
    )


async def first_of(app: Litestar) -> str:
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]  # Litestar's own ASGI types
    async with httpx.AsyncClient(transport=transport, base_url="http://api.example") as client:
        return (await client.get("/first")).text


async def test_a_route_gets_the_context_of_its_application() -> None:
    context = ["before"]
    app = build_app(context)
    context[0] = "after"
    assert await first_of(app) == "after"


async def test_applications_with_the_same_routes_have_their_own_contexts() -> None:
    one, other = an_app(build_app, ["one"]), an_app(build_app, ["other"])
    assert (await first_of(one), await first_of(other)) == ("one", "other")
