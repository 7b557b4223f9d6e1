"""Fields that a client may not set, in the body of every request that changes something."""

from typing import Final

import pytest
from tests.edge.documents.planted_fields import (
    CANARIES,
    NAMES,
    Change,
    changes_of,
    planted,
    rows_of,
)
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy, a_sell, a_word, an_asset

from foretell.trading.routes.app import build_app

pytestmark = pytest.mark.anyio

CHANGES: Final = changes_of(build_app)


async def bodies_of(alice: Trader) -> dict[str, object]:
    """Return bodies that succeed, by operation; any other operation takes an empty object."""
    placed = [
        (await alice.placed(a_buy("alice", price_ticks=30, salt=salt)))["orderID"]
        for salt in ("11", "12")
    ]
    read_only = (await alice.send("POST", "/auth/readonly-api-key")).json()
    order, other = (alice.body(a_buy("alice", price_ticks=45, salt=salt)) for salt in ("21", "22"))
    tokens = [{"token_id": an_asset(is_yes=True), "side": "BUY"}]
    reads = ("books", "prices", "midpoints", "spreads", "last-trades-prices")
    found: dict[str, object] = {
        "POST /order": order,
        "POST /order/validate": order,
        "POST /orders": [order, other],
        "DELETE /order": {"orderID": placed[0]},
        "DELETE /orders": placed,
        "DELETE /cancel-market-orders": {"market": a_word("market"), "asset_id": ""},
        "DELETE /auth/readonly-api-key": {"key": read_only["apiKey"]},
        "POST /profile": {"name": "Alice"},
        "POST /heartbeats": {"heartbeat_id": None},
        "POST /v1/heartbeats": {"heartbeat_id": None},
        "POST /orders-scoring": placed,
    }
    return found | {f"POST /{path}": tokens for path in reads}


async def stored(rig: TradingRig) -> str:
    """Return everything that the tables and the engine have, as text."""
    await rig.settle_tables()
    rows = await rows_of(rig.context.database)
    state = rig.host.engine.state
    return repr((rows, state.live_orders, state.placement_by_order))


@pytest.mark.case("G-08")
@pytest.mark.parametrize("canary", CANARIES)
@pytest.mark.parametrize("change", CHANGES, ids=str)
async def test_no_field_that_a_client_may_not_set_is_stored_or_shown(
    rig: TradingRig, alice: Trader, bob: Trader, change: Change, canary: object
) -> None:
    bodies = await bodies_of(alice)
    await bob.placed(a_sell("bob", price_ticks=45, salt="31"))
    body = bodies.get(str(change), {})
    path = change.path.format(id="1")
    answer = await alice.send(change.method, path, planted(body, [change.schema], canary))
    assert answer.status_code < 500
    assert answer.status_code == 200 or str(change) not in bodies, answer.text
    text = await stored(rig)
    assert str(canary) not in text
    assert not answer.is_success or str(canary) not in answer.text


async def test_a_field_that_a_client_may_set_is_seen_in_what_is_stored(
    rig: TradingRig, alice: Trader
) -> None:
    assert (await alice.send("POST", "/profile", {"name": CANARIES[0]})).status_code == 200
    assert str(CANARIES[0]) in await stored(rig)


def test_the_changes_are_those_of_the_document() -> None:
    names = {str(each) for each in CHANGES}
    assert {"POST /order", "DELETE /order", "POST /auth/api-key", "POST /heartbeats"} <= names
    assert {"status", "fee_rate_bps", "owner"} <= NAMES
