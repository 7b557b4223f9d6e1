from collections.abc import AsyncIterator

import pytest
from tests.rigs.scripted_api import ScriptedApi, a_session
from tests.rigs.values import a_key

from foretell.domain.errors.command import ApiRefused
from foretell.sandbox.market_creation import CHECKED, MarketCreator, SilentNarrator

pytestmark = pytest.mark.anyio

REQUEST = "9f3a0e52-5d8a-4a2c-8f53-4e9f7c1d2b3a"


@pytest.fixture
def api() -> ScriptedApi:
    return ScriptedApi()


@pytest.fixture
async def creator(api: ScriptedApi) -> AsyncIterator[MarketCreator]:
    async with a_session(api) as session:
        yield MarketCreator(session, a_key("creator"), SilentNarrator())


@pytest.mark.parametrize("status", ["auth_pending", "prepared", "failed", "expired"])
async def test_a_creation_that_was_not_checked_is_to_be_repeated(
    api: ScriptedApi, creator: MarketCreator, status: str
) -> None:
    api.prepare("GET /pending", {"request": {"status": status}})
    assert status not in CHECKED
    assert await creator.resume(REQUEST) == ()


async def test_a_creation_that_the_worker_does_not_know_is_to_be_repeated(
    api: ScriptedApi, creator: MarketCreator
) -> None:
    api.prepare("GET /pending", {"error": {"code": "request_not_found"}}, status=404)
    assert await creator.resume(REQUEST) == ()


async def test_a_worker_that_is_unavailable_does_not_mean_an_unknown_creation(
    api: ScriptedApi, creator: MarketCreator
) -> None:
    api.prepare("GET /pending", {"error": {"code": "store_unavailable"}}, status=503)
    with pytest.raises(ApiRefused, match="503"):
        await creator.resume(REQUEST)
