"""The state of games: their start, and how many of their markets still await a payout."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.instants import iso_time
from foretell.store.database import Transaction
from foretell.store.tables import events, halted_markets, markets, payouts, sports_events

GAMES_PER_QUERY_MAX: Final = 500
SECOND_MS: Final = 1_000


class GameState(NamedTuple):
    """The game of an event; a market that the chain lost counts neither as open nor as resolved.

    `details` are as in the public documents of its markets.
    """

    event_id: int
    slug: str
    game_id: str | None
    details: Mapping[str, Any]
    open_markets: int
    resolved_at_s: int | None
    """The time of the last payout; None before the first."""


async def load_game_states(tx: Transaction, event_ids: Collection[int]) -> Sequence[GameState]:
    """Return the state of each of these events that has a game, the oldest first."""
    assert len(event_ids) <= GAMES_PER_QUERY_MAX
    counted = (
        sa.select(
            markets.c.event_id,
            (sa.func.count() - sa.func.count(payouts.c.condition_id)).label("open_markets"),
            sa.func.max(payouts.c.timestamp_s).label("resolved_at_s"),
        )
        .select_from(
            markets.outerjoin(payouts, payouts.c.condition_id == markets.c.condition_id).outerjoin(
                halted_markets, halted_markets.c.condition_id == markets.c.condition_id
            )
        )
        .where(markets.c.event_id.in_(event_ids), halted_markets.c.condition_id.is_(None))
        .group_by(markets.c.event_id)
        .subquery()
    )
    rows = await tx.all(
        sa.select(
            sports_events.c.event_id,
            events.c.slug,
            sports_events.c.game_id,
            sports_events.c.details,
            counted.c.open_markets,
            counted.c.resolved_at_s,
        )
        .join(events, events.c.event_id == sports_events.c.event_id)
        .join(counted, counted.c.event_id == sports_events.c.event_id)
        .order_by(sports_events.c.event_id)
    )
    return [GameState._make(row) for row in rows]


async def load_starting_events(
    tx: Transaction, from_ms: int, to_ms: int, events_max: int
) -> Sequence[int]:
    """Return the events whose game starts between two times, to the second, the earliest first."""
    starts = sports_events.c.details["start_time"].as_string()
    rows = await tx.all(
        sa.select(sports_events.c.event_id)
        .where(
            starts >= iso_time(from_ms // SECOND_MS * SECOND_MS - SECOND_MS),
            starts <= iso_time(to_ms // SECOND_MS * SECOND_MS + SECOND_MS),
        )
        .order_by(starts, sports_events.c.event_id)
        .limit(events_max)
    )
    return [row.event_id for row in rows]
