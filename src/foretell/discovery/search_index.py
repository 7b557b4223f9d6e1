"""Finds events by words, however they are accented or capitalised.

No database folds letters the way people expect, so the folded texts of events are kept here. They
are only hints: what is found is looked up in the tables before it is shown. The index reads what was
written since it last looked, and a little of what it has seen, for transactions that came late.
"""

import asyncio
import unicodedata
from collections.abc import Sequence
from typing import Final

from foretell.store.database import Transaction
from foretell.store.queries.search_texts import SearchedEvent, load_searched_events

EVENTS_MAX: Final = 200_000
EVENTS_PER_READ: Final = 2_000
EVENTS_PER_SCAN: Final = 5_000
WORDS_MAX: Final = 8
OVERLAP_MS: Final = 60_000


def folded(text: str) -> str:
    """Return the text without capitals and without marks on its letters."""
    spread = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in spread if not unicodedata.combining(char))


def words_of(text: str) -> list[str]:
    """Return the words that count in a search: the first few, each once, folded."""
    return list(dict.fromkeys(folded(text).split()))[:WORDS_MAX]


def holds(haystack: str, words: Sequence[str]) -> bool:
    """Return whether a folded text holds every word, at least as a part of one of its own."""
    return all(word in haystack for word in words)


class SearchIndex:
    """The folded texts of the newest events, by their ids."""

    def __init__(self, events_max: int = EVENTS_MAX) -> None:
        self._events_max = events_max
        self._text_by_event: dict[int, str] = {}
        self._seen_ms = 0

    async def refresh(self, tx: Transaction) -> None:
        """Read what was written since the last look."""
        since_ms, after_id = self._seen_ms - OVERLAP_MS, 0
        while found := await load_searched_events(tx, since_ms, after_id, EVENTS_PER_READ):
            self._take(found)
            after_id = found[-1].event_id
        for event_id in sorted(self._text_by_event)[: -self._events_max]:
            del self._text_by_event[event_id]

    async def find(self, words: Sequence[str], limit: int) -> list[int]:
        """Return the ids of so many events whose texts hold every word, the newest first."""
        found: list[int] = []
        for position, event_id in enumerate(sorted(self._text_by_event, reverse=True)):
            if len(found) == limit:
                break
            if position % EVENTS_PER_SCAN == 0:
                await asyncio.sleep(0)
            if holds(self._text_by_event.get(event_id, ""), words):
                found.append(event_id)
        return found

    def _take(self, found: Sequence[SearchedEvent]) -> None:
        for event in found:
            self._text_by_event[event.event_id] = folded("\n".join(event.texts))
            self._seen_ms = max(self._seen_ms, event.updated_at_ms)
