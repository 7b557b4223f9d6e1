import httpx
import pytest
from tests.rigs.applications import serving
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from foretell.app.gateway import Gateway
from foretell.app.products import PRODUCT_BY_ROLE
from foretell.app.roles import PREFIX_BY_ROLE, Role

pytestmark = pytest.mark.anyio

ENGINE_WORDS = "the matching engine is restarting"
WORDS = "the process is still starting; try again later"
CODE = "starting"


@pytest.mark.parametrize(
    ("role", "status", "body"),
    [
        (
            Role.CREATION,
            503,
            {"error": {"code": CODE, "message": WORDS, "details": {"retry_after_s": 1}}},
        ),
        (Role.DATA, 503, {"error": f"{CODE}: {WORDS}"}),
    ],
)
async def test_each_api_refuses_in_the_words_of_its_clients(
    role: Role, status: int, body: object
) -> None:
    async with (
        serving(PRODUCT_BY_ROLE[role].unavailable_app()) as host,
        httpx.AsyncClient(timeout=60) as client,
    ):
        answer = await client.get(f"http://{host}/whatever")
    assert (answer.status_code, answer.json()) == (status, body)
    assert answer.headers["retry-after"] == "1"


async def test_trading_says_that_its_engine_restarts() -> None:
    async with (
        serving(PRODUCT_BY_ROLE[Role.TRADING].unavailable_app()) as host,
        httpx.AsyncClient(timeout=60) as client,
    ):
        answer = await client.post(f"http://{host}/order", json={})
    assert answer.status_code == 425
    assert answer.json()["error"] == ENGINE_WORDS
    assert answer.headers["retry-after"] == "1"


async def test_a_stream_is_refused_as_requests_are() -> None:
    app = Gateway({"/clob": PRODUCT_BY_ROLE[Role.TRADING].unavailable_app()}, "")
    async with serving(app) as host:
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://{host}/clob/ws/market", proxy=None)
    assert refused.value.response.status_code == 425
    assert refused.value.response.headers["retry-after"] == "1"


@pytest.mark.parametrize("role", PREFIX_BY_ROLE)
async def test_every_api_has_a_refusal(role: Role) -> None:
    async with (
        serving(PRODUCT_BY_ROLE[role].unavailable_app()) as host,
        httpx.AsyncClient(timeout=60) as client,
    ):
        answer = await client.get(f"http://{host}/")
    assert answer.status_code in {425, 503}
    assert "error" in answer.json()
