"""Search index of events and tags by words, without regard to accents and capitals.

Databases fold letters differently, so folded texts are kept in memory. They are only hints: the tables decide whether
a found event or tag is shown. A refresh reads the events written since the last one, with their tags, which are
written with them, and those of a short time before it, because transactions may commit late. It looks at them one by
one only if their sums have changed. Once none was new for that time, none can be, and it asks for later ones only.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

from foretell.discovery.folded_texts import FoldedTexts
from foretell.domain.values.folding import folded
from foretell.store.database import Transaction
from foretell.store.queries.search_texts import (
    WrittenEvent,
    WrittenSums,
    load_tag_texts,
    load_texts,
    load_written_events,
    load_written_sums,
)

EVENTS_MAX: Final = 200_000
TAGS_MAX: Final = 200_000
EVENTS_PER_READ: Final = 2_000
WORDS_MAX: Final = 8
TEXT_CHARS_MAX: Final = 500
"""Characters of a query that count: the time to fold marks upon marks grows with the square of their number."""
NOTHING: Final = WrittenSums(0, 0)
OVERLAP_MS: Final = 60_000
"""The longest time between the time that an event is given and its commit."""


def words_of(text: str) -> list[str]:
    """Return the words of a query: folded, each once, limited in number."""
    return list(dict.fromkeys(folded(text[:TEXT_CHARS_MAX]).split()))[:WORDS_MAX]


class SearchIndex:
    """The folded texts of the newest events and of their tags, by their ids."""

    def __init__(
        self, events_max: int = EVENTS_MAX, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock_s = clock_s
        self._events = FoldedTexts(events_max)
        self._tags = FoldedTexts(TAGS_MAX)
        self._newest_ms_by_event: dict[int, int] = {}
        self._known = NOTHING
        self._read_until_ms = 0
        self._read_until_at_s = 0.0

    async def refresh(self, tx: Transaction) -> None:
        """Read the events that were written since the last refresh."""
        is_complete = self._clock_s() - self._read_until_at_s > OVERLAP_MS / 1000
        since_ms = self._read_until_ms + 1 if is_complete else self._read_until_ms - OVERLAP_MS
        if await load_written_sums(tx, since_ms) == (NOTHING if is_complete else self._known):
            return
        after_id, is_last = 0, False
        while not is_last:
            written = await load_written_events(tx, since_ms, after_id, EVENTS_PER_READ)
            new = [each for each in written if self._is_new(each)]
            if new:
                await self._read(tx, new)
            is_last = len(written) < EVENTS_PER_READ
            after_id = written[-1].event_id if written else after_id

    async def find_events(self, words: Sequence[str], limit: int) -> list[int]:
        """Return the ids of events that contain every word, the newest first, up to a limit."""
        return await self._events.find(words, limit)

    async def find_tags(self, words: Sequence[str]) -> list[int]:
        """Return the ids of all tags that contain every word, the newest first."""
        return await self._tags.find(words, TAGS_MAX)

    def _is_new(self, event: WrittenEvent) -> bool:
        return self._newest_ms_by_event.get(event.event_id) != event.updated_at_ms

    async def _read(self, tx: Transaction, new: Sequence[WrittenEvent]) -> None:
        """Keep the texts of events and of their tags, and the times of events that may be looked at again."""
        ids = [each.event_id for each in new]
        texts_by_event, texts_by_tag = await load_texts(tx, ids), await load_tag_texts(tx, ids)
        for kept, texts_by_id in ((self._events, texts_by_event), (self._tags, texts_by_tag)):
            kept.put({row_id: "\n".join(texts) for row_id, texts in texts_by_id.items()})
        newest = self._newest_ms_by_event | dict(new)
        until_ms = max(updated_at_ms for _, updated_at_ms in new)
        if until_ms > self._read_until_ms:
            self._read_until_ms, self._read_until_at_s = until_ms, self._clock_s()
        since_ms = self._read_until_ms - OVERLAP_MS
        newest = {id_: at_ms for id_, at_ms in newest.items() if at_ms >= since_ms}
        past_ms = sum(at_ms - since_ms for at_ms in newest.values())
        self._newest_ms_by_event, self._known = newest, WrittenSums(len(newest), past_ms)
