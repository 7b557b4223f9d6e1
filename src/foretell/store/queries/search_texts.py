"""The texts by which events are found."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.tables import event_tags, events, markets, tags


class WrittenEvent(NamedTuple):
    """An event and the time of its last change."""

    event_id: int
    updated_at_ms: int


class WrittenSums(NamedTuple):
    """The number of some events, and how long after a time they were changed, in all.

    Both grow with every event that is added to them or changed later.
    """

    events: int
    past_ms: int


_SINCE: Final = sa.bindparam("since", type_=sa.BigInteger)
_WRITTEN: Final = (
    sa.select(events.c.event_id, events.c.updated_at_ms)
    .where(
        events.c.updated_at_ms >= _SINCE,
        events.c.event_id > sa.bindparam("after", type_=sa.BigInteger),
    )
    .order_by(events.c.event_id)
    .limit(sa.bindparam("rows", type_=sa.BigInteger))
)
_WRITTEN_SUMS: Final = sa.select(
    sa.func.count().label("events"),
    sa.func.coalesce(sa.func.sum(events.c.updated_at_ms - _SINCE), 0).label("past_ms"),
).where(events.c.updated_at_ms >= _SINCE)


async def load_written_events(
    tx: Transaction, since_ms: int, after_id: int, limit: int
) -> Sequence[WrittenEvent]:
    """Return events written since a time, by ascending id."""
    place = {"since": since_ms, "after": after_id, "rows": limit}
    return [WrittenEvent._make(row) for row in await tx.all(_WRITTEN, place)]


async def load_written_sums(tx: Transaction, since_ms: int) -> WrittenSums:
    """Return the sums of the events written since a time."""
    [row] = await tx.all(_WRITTEN_SUMS, {"since": since_ms})
    return WrittenSums(row.events, int(row.past_ms))


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


async def load_tag_texts(tx: Transaction, event_ids: Sequence[int]) -> Mapping[int, Sequence[str]]:
    """Return the texts by which each tag of these events is found."""
    rows = await tx.all(
        sa.select(tags.c.tag_id, tags.c.label, tags.c.slug)
        .join(event_tags, event_tags.c.tag_id == tags.c.tag_id)
        .where(event_tags.c.event_id.in_(event_ids))
        .distinct()
    )
    return {row.tag_id: (row.label, row.slug) for row in rows}
