"""Cancels, placements and fills that are sent at once, in every order."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from tests.rigs.applications import serving
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy, a_sell, an_order_id
from tests.trading.rig import Listener, listening

pytestmark = pytest.mark.anyio

RESTING = a_buy("alice", price_ticks=40)
LATER = a_buy("alice", price_ticks=39, salt="2")
CROSSING = a_sell("bob", price_ticks=40)
FIRST, SECOND, TAKER = an_order_id(RESTING), an_order_id(LATER), an_order_id(CROSSING)
ACTS = ("fill", "cancel", "cancel all", "place")


@pytest.fixture
async def host(rig: TradingRig) -> AsyncIterator[str]:
    async with serving(rig.app) as host:
        yield host


async def send(act: str, alice: Trader, bob: Trader) -> Any:
    """Send a request, and return its answer."""
    match act:
        case "fill":
            return await bob.placed(CROSSING)
        case "cancel":
            return (await alice.send("DELETE", "/order", {"orderID": FIRST})).json()
        case "cancel all":
            return (await alice.send("DELETE", "/cancel-all")).json()
        case _:
            return await alice.placed(LATER)


async def published(listener: Listener) -> list[dict[str, Any]]:
    """Return the messages that a stream has sent until now."""
    await listener.send("PING")
    messages = []
    while (frame := await listener.text()) != "PONG":
        messages.append(json.loads(frame))
    return messages


@pytest.mark.case("B-07")
@pytest.mark.parametrize("acts", list(itertools.permutations(ACTS)), ids="-".join)
async def test_requests_that_race_have_one_outcome_that_both_parties_are_shown(
    rig: TradingRig, alice: Trader, bob: Trader, host: str, acts: Sequence[str]
) -> None:
    async with listening(host, "/ws/user") as alices, listening(host, "/ws/user") as bobs:
        await alices.log_in(alice)
        await bobs.log_in(bob)
        await alice.placed(RESTING)
        answers = await asyncio.gather(*(send(act, alice, bob) for act in acts))
        by_act = dict(zip(acts, answers, strict=True))
        seen, theirs = await published(alices), await published(bobs)
    canceled = by_act["cancel"]["canceled"] + by_act["cancel all"]["canceled"]
    trades = by_act["fill"].get("tradeIDs") or []

    assert (FIRST in canceled) is not bool(trades)
    assert len(canceled) == len(set(canceled))
    live = rig.host.engine.state.live_orders
    assert FIRST not in live
    assert (SECOND in live) is not (SECOND in canceled)
    assert (TAKER in live) is not bool(trades)
    for messages in (seen, theirs):
        assert [each["id"] for each in messages if each["event_type"] == "trade"] == trades
    ended = [each["id"] for each in seen if each["type"] == "CANCELLATION"]
    assert sorted(ended) == sorted(canceled)
    for trader, order_id in ((alice, FIRST), (alice, SECOND), (bob, TAKER)):
        present = await trader.get(f"/data/order/{order_id}")
        status = "CANCELED" if order_id in canceled else "MATCHED"
        assert present["status"] == ("LIVE" if order_id in live else status)
        assert present["associate_trades"] == (trades if order_id != SECOND else [])
