"""Tags, by their ids and slugs, by their numbers of events, and those of events."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.json_rows import json_rows
from foretell.store.lookups import one_of
from foretell.store.tables import event_tags, events, tags

_IDS: Final = "ids"
_TAG_FIELDS: Final = ("tag_id", "label", "slug", "created_at_ms")
_TAG_ROWS: Final = msgspec.json.Decoder(list[tuple[int, str, str, int]])


class CatalogTag(NamedTuple):
    """A tag, and the number of its events."""

    tag_id: int
    label: str
    slug: str
    created_at_ms: int
    event_count: int


TAGS_OF_EVENT: Final = (
    sa.select(json_rows(*(tags.c[name] for name in _TAG_FIELDS)))
    .join(event_tags, event_tags.c.tag_id == tags.c.tag_id)
    .where(event_tags.c.event_id == events.c.event_id)
    .correlate(events)
    .scalar_subquery()
)
"""The tags of an event, for queries of events; `tags_in` reads them."""


async def load_tags(tx: Transaction, tag_ids: Sequence[int]) -> Sequence[CatalogTag]:
    """Return these tags in the order of the ids; unknown ids are left out."""
    rows = await tx.all(_tags().where(tags.c.tag_id.in_(tag_ids)))
    tag_by_id = {row.tag_id: CatalogTag._make(row) for row in rows}
    return [tag_by_id[tag_id] for tag_id in tag_ids if tag_id in tag_by_id]


async def load_tag_by_slug(tx: Transaction, slug: str) -> CatalogTag | None:
    """Return the tag with this slug, or None."""
    row = await tx.first(_tags().where(tags.c.slug == slug))
    return None if row is None else CatalogTag._make(row)


async def load_top_tags(
    tx: Transaction, tag_ids: Collection[int], limit: int, considered_max: int
) -> Sequence[CatalogTag]:
    """Return a number of these tags, those with the most events first, if they are among so many of all tags."""
    values = {_IDS: list(tag_ids), "limit": limit, "considered": considered_max}
    return [CatalogTag._make(row) for row in await tx.all(_TOP_TAGS, values)]


async def load_tags_of_events(
    tx: Transaction, event_ids: Collection[int]
) -> Mapping[int, Sequence[CatalogTag]]:
    """Return the tags of each event."""
    rows = await tx.all(_TAGS_OF_EVENTS, {_IDS: list(event_ids)})
    tags_by_event: defaultdict[int, list[CatalogTag]] = defaultdict(list)
    for row in rows:
        tags_by_event[row.event_id].append(CatalogTag._make((*row[1:], 0)))
    return tags_by_event


def tags_in(json: str | None) -> list[CatalogTag]:
    """Return the tags in a row of an event, whose numbers of events are not loaded."""
    rows = [] if json is None else _TAG_ROWS.decode(json)
    return [CatalogTag(*row, 0) for row in sorted(rows)]


def _tags() -> sa.Select[Any]:
    return sa.select(*(tags.c[name] for name in CatalogTag._fields))


def _select_top_tags() -> sa.Select[Any]:
    first = tags.c.event_count.desc(), tags.c.tag_id
    most = _tags().order_by(*first).limit(sa.bindparam("considered", type_=sa.BigInteger))
    considered = most.subquery()
    return (
        sa.select(considered)
        .where(one_of(considered.c.tag_id, _IDS))
        .order_by(considered.c.event_count.desc(), considered.c.tag_id)
        .limit(sa.bindparam("limit", type_=sa.BigInteger))
    )


_TOP_TAGS: Final = _select_top_tags()
_TAGS_OF_EVENTS: Final = (
    sa.select(event_tags.c.event_id, *(tags.c[name] for name in _TAG_FIELDS))
    .join(tags, tags.c.tag_id == event_tags.c.tag_id)
    .where(one_of(event_tags.c.event_id, _IDS))
    .order_by(tags.c.tag_id)
)
