"""The texts by which events are found."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.tables import event_tags, events, markets, tags


class SearchedEvent(NamedTuple):
    """An event with the texts by which it is found."""

    event_id: int
    updated_at_ms: int
    texts: tuple[str, ...]


async def load_searched_events(
    tx: Transaction, since_ms: int, after_id: int, limit: int
) -> Sequence[SearchedEvent]:
    """Return events written since a time with the texts by which they are found, by ascending id."""
    rows = await tx.all(
        sa.select(events.c.event_id, events.c.updated_at_ms, events.c.title, events.c.slug)
        .where(events.c.updated_at_ms >= since_ms, events.c.event_id > after_id)
        .order_by(events.c.event_id)
        .limit(limit)
    )
    ids = [row.event_id for row in rows]
    texts_by_event: dict[int, list[str]] = {row.event_id: [row.title, row.slug] for row in rows}
    questions = sa.select(markets.c.event_id, markets.c.question.label("text")).where(
        markets.c.event_id.in_(ids)
    )
    labels = (
        sa.select(event_tags.c.event_id, tags.c.label.label("text"))
        .join(tags, tags.c.tag_id == event_tags.c.tag_id)
        .where(event_tags.c.event_id.in_(ids))
    )
    for query in (questions, labels):
        for row in await tx.all(query):
            texts_by_event[row.event_id].append(row.text)
    return [
        SearchedEvent(row.event_id, row.updated_at_ms, tuple(texts_by_event[row.event_id]))
        for row in rows
    ]
