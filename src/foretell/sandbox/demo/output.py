"""Chapter 3: the trades and positions, as the data and discovery APIs show them."""

from typing import Any

from foretell.domain.errors.command import DemoMismatch
from foretell.domain.values.hexadecimal import Address
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.market_creation import SandboxMarket
from foretell.sdk.http import wait_for


async def show(session: DemoSession, market: SandboxMarket, alice: Address, bob: Address) -> None:
    """Show positions, values, trades and activity, and the page of the market."""
    positions = await _positions(session, market, bob, count=2)
    held = ", ".join(f"{row['size']:g} {row['outcome']}" for row in positions)
    session.state(f"GET /positions: Bob's Safe holds {held}")
    value = await session.data.get("/value", user=alice, market=market.condition_id)
    session.state(f"GET /value: Alice's position is worth {value[0]['value']:g}")
    trades = await session.data.get("/trades", market=market.condition_id)
    if len(trades) != 2:  # noqa: PLR2004 - the story's two matches
        raise DemoMismatch("the number of trades", len(trades), 2)
    listed_trades = "; ".join(
        f"{row['side']} {row['size']:g} {row['outcome']} at {row['price']:g}" for row in trades
    )
    session.state(f"GET /trades: {listed_trades}")
    activity = await session.data.get("/activity", user=bob, market=market.condition_id)
    session.state(f"GET /activity: Bob {', '.join(row['type'] for row in activity)}")
    listed = await session.discovery.get("/markets", condition_ids=market.condition_id)
    events = await session.discovery.get("/events", slug=listed[0]["slug"])
    session.state(
        f"GET /markets and /events: {listed[0]['question']!r} in event {events[0]['id']},"
        f" volume {listed[0]['volume']}"
    )


async def _positions(
    session: DemoSession, market: SandboxMarket, wallet: Address, count: int
) -> list[Any]:
    async def fetch_positions() -> list[Any] | None:
        rows = await session.data.get("/positions", user=wallet, market=market.condition_id)
        return list(rows) if len(rows) == count else None

    return await wait_for("the positions", fetch_positions)
