"""Search index of events by words, without regard to accents and capitals.

Databases fold letters differently, so the folded texts of events are kept in memory. They are only
hints: the tables decide whether a found event is shown. A refresh reads the events written since the
last one, and looks for those of a short time before it, because transactions may commit late. Once none of those was new
for that time, none can be, and it looks for later ones only: a thousand events written at once cost nothing then.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from foretell.domain.values.folding import folded
from foretell.store.database import Transaction
from foretell.store.queries.search_texts import (
    WrittenEvent,
    load_texts,
    load_written_events,
)

EVENTS_MAX: Final = 200_000
EVENTS_PER_READ: Final = 2_000
EVENTS_PER_SCAN: Final = 5_000
WORDS_MAX: Final = 8
TEXT_CHARS_MAX: Final = 500
"""Characters of a query that count: the time to fold marks upon marks grows with the square of their number."""
OVERLAP_MS: Final = 60_000
"""The longest time between the time that an event is given and its commit."""


def words_of(text: str) -> list[str]:
    """Return the words of a query: folded, each once, limited in number."""
    return list(dict.fromkeys(folded(text[:TEXT_CHARS_MAX]).split()))[:WORDS_MAX]


def contains_all(text: str, words: Sequence[str]) -> bool:
    """Return whether a folded text contains every word, also as a part of a longer one."""
    return all(word in text for word in words)


class SearchIndex:
    """The folded texts of the newest events, by their ids."""

    def __init__(
        self, events_max: int = EVENTS_MAX, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._events_max = events_max
        self._clock_s = clock_s
        self._text_by_event: dict[int, str] = {}
        self._newest_ms_by_event: dict[int, int] = {}
        self._read_until_ms = 0
        self._read_until_at_s = 0.0

    async def refresh(self, tx: Transaction) -> None:
        """Read the events that were written since the last refresh."""
        is_complete = self._clock_s() - self._read_until_at_s > OVERLAP_MS / 1000
        since_ms = self._read_until_ms + 1 if is_complete else self._read_until_ms - OVERLAP_MS
        after_id = 0
        while written := await load_written_events(tx, since_ms, after_id, EVENTS_PER_READ):
            await self._read(tx, [each for each in written if self._is_new(each)])
            after_id = written[-1].event_id
        self._forget(self._read_until_ms - OVERLAP_MS)

    async def find(self, words: Sequence[str], limit: int) -> list[int]:
        """Return the ids of events that contain every word, the newest first, up to a limit."""
        found: list[int] = []
        for position, event_id in enumerate(sorted(self._text_by_event, reverse=True)):
            if len(found) == limit:
                break
            if position % EVENTS_PER_SCAN == 0:
                await asyncio.sleep(0)
            if contains_all(self._text_by_event.get(event_id, ""), words):
                found.append(event_id)
        return found

    def _is_new(self, event: WrittenEvent) -> bool:
        return self._newest_ms_by_event.get(event.event_id) != event.updated_at_ms

    async def _read(self, tx: Transaction, new: Sequence[WrittenEvent]) -> None:
        """Keep the texts of events."""
        texts_by_event = await load_texts(tx, [each.event_id for each in new]) if new else {}
        for event_id, updated_at_ms in new:
            self._text_by_event[event_id] = folded("\n".join(texts_by_event[event_id]))
            self._newest_ms_by_event[event_id] = updated_at_ms
            if updated_at_ms > self._read_until_ms:
                self._read_until_ms, self._read_until_at_s = updated_at_ms, self._clock_s()

    def _forget(self, before_ms: int) -> None:
        """Drop the oldest events above the bound, and the times of those that are not looked for again."""
        for event_id in sorted(self._text_by_event)[: -self._events_max]:
            del self._text_by_event[event_id]
        newest = self._newest_ms_by_event
        self._newest_ms_by_event = {id_: at for id_, at in newest.items() if at >= before_ms}
