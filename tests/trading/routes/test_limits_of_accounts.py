"""Rate limits of an account, which all its keys share."""

from collections.abc import AsyncIterator

import pytest
from tests.rigs.clock import Clock
from tests.rigs.orders.builders import PATH, a_builder_of
from tests.rigs.trading import Trader, TradingRig
from tests.trading.routes.test_rate_limits import (
    FAST_AND_SLOW,
    LIMIT,
    REMAINING,
    Limited,
    limited,
    signed,
)

from foretell.edge.rate_limits import DEFAULTS, RateLimits
from foretell.trading.streams.login import client_of

pytestmark = pytest.mark.anyio

KEYS = 3


@pytest.fixture
async def published(rig: TradingRig) -> AsyncIterator[Limited]:
    async with limited(rig, RateLimits(DEFAULTS), Clock().now_ms) as served:
        yield served


@pytest.fixture
async def traders(rig: TradingRig) -> list[Trader]:
    """Return alice with each of her keys."""
    return [await rig.trader("alice", nonce) for nonce in range(KEYS)]


@pytest.mark.parametrize("path", FAST_AND_SLOW)
async def test_attack_h4_the_keys_of_an_account_share_its_limits(
    published: Limited, traders: list[Trader], path: str
) -> None:
    assert len({trader.key_id for trader in traders}) == KEYS
    answers = [await signed(trader, published.http, "POST", path, b"{}") for trader in traders]
    assert [answer.headers[LIMIT] for answer in answers] == ["2400"] * KEYS
    assert [answer.headers[REMAINING] for answer in answers] == ["2399", "2398", "2397"]
    uses = [(await signed(each, published.http, "GET", "/limits")).json() for each in traders]
    assert uses[0] == uses[1] == uses[2]


async def test_accounts_do_not_share_a_limit(
    published: Limited, traders: list[Trader], bob: Trader
) -> None:
    await signed(traders[0], published.http, "POST", "/order", b"{}")
    answer = await signed(bob, published.http, "POST", "/order", b"{}")
    assert answer.headers[REMAINING] == "2399"


async def test_attack_h4_the_keys_of_a_builder_share_its_limits(
    rig: TradingRig, published: Limited, traders: list[Trader]
) -> None:
    builders, left = [], []
    for _ in range(KEYS):
        rig.clock.at_ms += 1_000
        builders.append(await a_builder_of(traders[0]))
    for builder in reversed(builders):  # each request deletes the newest key
        headers = builder.headers("DELETE", PATH)
        answer = await published.http.delete(PATH, headers=headers)
        assert answer.status_code == 200, answer.text
        left.append(answer.headers[REMAINING])
    assert left == ["4999", "4998", "4997"]


async def test_attack_h4_the_read_only_keys_of_an_account_share_limits_apart_from_its_own(
    published: Limited, traders: list[Trader]
) -> None:
    alice, left = traders[0], []
    for _ in range(KEYS):
        key = (await alice.send("POST", "/auth/readonly-api-key")).json()["apiKey"]
        headers = {"SERVICE_ADDRESS": alice.address, "SERVICE_READONLY_API_KEY": key}
        answer = await published.http.get("/data/trades", headers=headers)
        assert answer.status_code == 200, answer.text
        left.append(answer.headers[REMAINING])
    assert left == ["149", "148", "147"]
    own = await signed(alice, published.http, "GET", "/data/trades")
    assert own.headers[REMAINING] == "149"


async def test_streams_of_an_account_are_one_client_apart_from_its_readers(
    rig: TradingRig, traders: list[Trader]
) -> None:
    ring = rig.context.key_ring
    logins = [
        await ring.authenticate_credentials(each.key_id, each.secret, each.passphrase)
        for each in traders
    ]
    assert {client_of(login) for login in logins} == {traders[0].address}
    reader = logins[0]._replace(key_id="readonly abc")
    assert client_of(reader) == f"readers of {traders[0].address}"
