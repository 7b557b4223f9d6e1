from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.rigs.values import a_key

from foretell.app.clock_and_ids import now_ms
from foretell.bench.rigs.load import make_requests, send_all
from foretell.bench.rigs.ports import is_free
from foretell.bench.rigs.trading_alone import TradingAlone, trading_alone
from foretell.bench.rigs.world import World, funding_command, make_world, market_commands
from foretell.domain.errors.command import ApiRefused, BenchFailed
from foretell.sdk.http import HttpClient
from foretell.store.trading.api_keys import record_key

pytestmark = pytest.mark.anyio

PATH = "/clob"
ORDERS = 40


@pytest.fixture(scope="session")
def world() -> World:
    return make_world(a_key("bench"))


@pytest.fixture
async def alone(world: World, tmp_path: Path) -> AsyncIterator[TradingAlone]:
    async with trading_alone(world.deployment, world.master_key, tmp_path) as alone:
        yield alone


async def furnish(alone: TradingAlone, world: World) -> None:
    """Record the keys of the users, open the markets and fund all users."""
    async with alone.database.writing() as tx:
        for user in world.users:
            await record_key(tx, user.credentials.key_id, user.index, now_ms())
    for command in market_commands(world, alone.engine.clock_ms()):
        await alone.engine.submit(command)
    await alone.engine.submit(funding_command(world, alone.engine.clock_ms()))


async def test_trading_alone_answers_as_soon_as_it_is_started(alone: TradingAlone) -> None:
    async with HttpClient(f"http://127.0.0.1:{alone.port}{PATH}") as client:
        assert await client.get("/ok") == "OK"


async def test_trading_alone_accepts_signed_orders_and_matches_them(
    alone: TradingAlone, world: World
) -> None:
    await furnish(alone, world)
    before = alone.engine.sequence
    requests = make_requests(world, PATH, ORDERS, 0, now_ms() // 1000)
    answers = await send_all(alone.port, requests, connections=4)
    assert len(answers.latencies_s) == ORDERS
    assert answers.seconds > 0
    assert alone.engine.sequence == before + ORDERS
    token = str(world.tokens[0].yes)
    async with HttpClient(f"http://127.0.0.1:{alone.port}{PATH}") as client:
        book = await client.get("/book", token_id=token)
        price = await client.get("/last-trade-price", token_id=token)
    assert book["bids"] != []
    assert book["asks"] != []
    assert price["side"] in {"BUY", "SELL"}


async def test_an_order_of_an_unknown_user_ends_a_round(alone: TradingAlone, world: World) -> None:
    requests = make_requests(world, PATH, 3, 0, now_ms() // 1000)
    with pytest.raises(BenchFailed, match="HTTP 401"):
        await send_all(alone.port, requests, connections=1)


async def test_an_order_in_a_market_that_is_not_open_is_refused_by_name(
    alone: TradingAlone, world: World
) -> None:
    async with HttpClient(f"http://127.0.0.1:{alone.port}{PATH}") as client:
        with pytest.raises(ApiRefused, match="No orderbook exists"):
            await client.get("/book", token_id=str(world.tokens[0].yes))


async def test_trading_alone_ends_with_its_block(world: World, tmp_path: Path) -> None:
    async with trading_alone(world.deployment, world.master_key, tmp_path) as alone:
        port = alone.port
    assert is_free(port)
    async with trading_alone(world.deployment, world.master_key, tmp_path) as again:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            answer = await http.get(f"http://127.0.0.1:{again.port}/")
        assert list(answer.json()) == ["clob"]
