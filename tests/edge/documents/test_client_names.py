"""Every application answers in the name of its client: else no transaction of a request has a deadline."""

import httpx
import pytest
from litestar import Litestar, get
from tests.edge.documents.apis import APIS, BUILD_APPS

from foretell.store.public_reads.places import client_name, in_request

pytestmark = pytest.mark.anyio


@get("/client-name")
async def show_client_name() -> tuple[str, bool]:
    return client_name.get(), in_request()


@pytest.mark.parametrize("api", APIS)
async def test_guard_every_application_names_its_client(api: str) -> None:
    app: Litestar = BUILD_APPS[api](None)
    app.register(show_client_name)
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]  # Litestar's own ASGI types
    async with httpx.AsyncClient(transport=transport, base_url="http://api.test") as client:
        answer = await client.get("/client-name")
    name, is_in_request = answer.json()
    assert name
    assert is_in_request
