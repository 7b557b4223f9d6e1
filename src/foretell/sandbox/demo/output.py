"""Third act: what happened, as the data and discovery APIs show it."""

from typing import Any

from foretell.domain.errors.command import DemoMismatch
from foretell.domain.values.hexadecimal import Address
from foretell.sandbox.demo.create_market import DemoMarket
from foretell.sandbox.demo.session import Stage
from foretell.sdk.http import wait_for


async def show(stage: Stage, market: DemoMarket, alice: Address, bob: Address) -> None:
    """Look at positions, values, trades and activity, and at the market's page."""
    positions = await _positions(stage, market, bob, count=2)
    held = ", ".join(f"{row['size']:g} {row['outcome']}" for row in positions)
    stage.tell(f"GET /positions: Bob's Safe holds {held}")
    value = await stage.data.get("/value", user=alice, market=market.condition_id)
    stage.tell(f"GET /value: Alice's position is worth {value[0]['value']:g}")
    trades = await stage.data.get("/trades", market=market.condition_id)
    if len(trades) != 2:  # noqa: PLR2004 - the story's two matches
        raise DemoMismatch("the number of trades", len(trades), 2)
    told = "; ".join(
        f"{row['side']} {row['size']:g} {row['outcome']} at {row['price']:g}" for row in trades
    )
    stage.tell(f"GET /trades: {told}")
    activity = await stage.data.get("/activity", user=bob, market=market.condition_id)
    stage.tell(f"GET /activity: Bob {', '.join(row['type'] for row in activity)}")
    listed = await stage.discovery.get("/markets", condition_ids=market.condition_id)
    events = await stage.discovery.get("/events", slug=listed[0]["slug"])
    stage.tell(
        f"GET /markets and /events: {listed[0]['question']!r} in event {events[0]['id']},"
        f" volume {listed[0]['volume']}"
    )


async def _positions(stage: Stage, market: DemoMarket, wallet: Address, count: int) -> list[Any]:
    async def look() -> list[Any] | None:
        rows = await stage.data.get("/positions", user=wallet, market=market.condition_id)
        return list(rows) if len(rows) == count else None

    return await wait_for("the positions", look)
