"""The texts by which events are found."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.tables import event_tags, events, markets, tags


class WrittenEvent(NamedTuple):
    """An event and the time of its last change."""

    event_id: int
    updated_at_ms: int


async def load_written_events(
    tx: Transaction, since_ms: int, after_id: int, limit: int
) -> Sequence[WrittenEvent]:
    """Return events written since a time, by ascending id."""
    rows = await tx.all(
        sa.select(events.c.event_id, events.c.updated_at_ms)
        .where(events.c.updated_at_ms >= since_ms, events.c.event_id > after_id)
        .order_by(events.c.event_id)
        .limit(limit)
    )
    return [WrittenEvent(row.event_id, row.updated_at_ms) for row in rows]


async def load_texts(tx: Transaction, event_ids: Sequence[int]) -> Mapping[int, Sequence[str]]:
    """Return the texts by which each of these events is found."""
    of_event = events.c.event_id.in_(event_ids)
    names = sa.select(events.c.event_id, events.c.title, events.c.slug).where(of_event)
    texts_by_event = {row.event_id: [row.title, row.slug] for row in await tx.all(names)}
    questions = sa.select(markets.c.event_id, markets.c.question.label("text")).where(
        markets.c.event_id.in_(event_ids)
    )
    labels = (
        sa.select(event_tags.c.event_id, tags.c.label.label("text"))
        .join(tags, tags.c.tag_id == event_tags.c.tag_id)
        .where(event_tags.c.event_id.in_(event_ids))
    )
    for query in (questions, labels):
        for row in await tx.all(query):
            texts_by_event[row.event_id].append(row.text)
    return texts_by_event
