from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.clock import Clock
from tests.rigs.rows import Rows, a_market_row, an_event_row
from tests.rigs.values import NOW_MS

from foretell.discovery import search_index
from foretell.discovery.folded_texts import contains_all
from foretell.discovery.search_index import (
    OVERLAP_MS,
    WORDS_MAX,
    SearchIndex,
    words_of,
)
from foretell.domain.creation.payload import Category
from foretell.domain.values.folding import folded
from foretell.store.database import Database, Transaction
from foretell.store.queries.search_texts import (
    WrittenEvent,
    load_texts,
    load_written_events,
)
from foretell.store.tables import events

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Élection", "election"),
        ("ÜBER", "uber"),
        ("Straße", "strasse"),
        ("ΑΘΉΝΑ", "αθηνα"),
        ("ﬁnal", "final"),
        ("e\u0301te\u0301", "ete"),
    ],
)
def test_letters_lose_their_capitals_and_marks(text: str, plain: str) -> None:
    assert folded(text) == plain


@given(st.text(max_size=40))
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert folded(folded(text)) == folded(text)


@given(st.text(max_size=40))
def test_a_text_is_found_by_its_own_words_in_any_capitals(text: str) -> None:
    assert contains_all(folded(text), words_of(text))
    assert contains_all(folded(text.upper()), words_of(text.lower().upper()))


def test_only_the_first_words_of_a_long_query_count_each_once() -> None:
    assert words_of("a b A  c") == ["a", "b", "c"]
    assert len(words_of(" ".join(map(str, range(50))))) == WORDS_MAX


async def found(database: Database, index: SearchIndex, text: str, limit: int = 10) -> list[int]:
    async with database.reading() as tx:
        await index.refresh(tx)
        return await index.find_events(words_of(text), limit)


async def reads_of(database: Database, index: SearchIndex) -> tuple[list[int], list[int]]:
    """Refresh an index, and return the ids of the events that it looked at, and those whose texts it read."""
    seen: list[int] = []
    read: list[int] = []
    async with database.reading() as tx:

        async def look(*arguments: Any) -> Sequence[WrittenEvent]:
            found = await load_written_events(*arguments)
            seen.extend(event.event_id for event in found)
            return found

        async def load(tx: Transaction, event_ids: Sequence[int]) -> Mapping[int, Sequence[str]]:
            read.extend(event_ids)
            return await load_texts(tx, event_ids)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search_index, "load_written_events", look)
            patch.setattr(search_index, "load_texts", load)
            await index.refresh(tx)
    return seen, read


async def test_new_events_are_found_the_newest_first(database: Database) -> None:
    index = SearchIndex()
    async with database.writing() as tx:
        await Rows(tx).open_named("rain")
    assert await found(database, index, "RÁIN") == [1]
    async with database.writing() as tx:
        await Rows(tx, 100).open(an_event_row("rainbow"), NOW_MS + 1)
    assert await found(database, index, "rain") == [2, 1]
    assert await found(database, index, "rain", limit=1) == [2]
    assert await found(database, index, "rain about") == [2, 1]
    assert await found(database, index, "rain tomorrow") == []


async def test_an_event_that_is_committed_late_is_found_too(database: Database) -> None:
    index = SearchIndex()
    async with database.writing() as tx:
        await Rows(tx).open(an_event_row("rain"), NOW_MS)
    assert await found(database, index, "rain") == [1]
    async with database.writing() as tx:
        await Rows(tx, 100).open(an_event_row("drain"), NOW_MS - OVERLAP_MS)
    assert await found(database, index, "rain") == [2, 1]


async def test_events_that_were_read_are_not_read_again_once_none_can_be_committed_late(
    database: Database,
) -> None:
    clock = Clock()
    index = SearchIndex(clock_s=clock.now_s)
    async with database.writing() as tx:
        await Rows(tx).open(an_event_row("rain"), NOW_MS)
    assert await reads_of(database, index) == ([1], [1])
    clock.move(OVERLAP_MS)
    assert await reads_of(database, index) == ([], [])
    clock.move(1)
    assert await reads_of(database, index) == ([], [])
    async with database.writing() as tx:
        await Rows(tx, 100).open(an_event_row("drain"), NOW_MS + 1)
    assert await reads_of(database, index) == ([2], [2])
    assert await reads_of(database, index) == ([], [])
    assert await found(database, index, "rain") == [2, 1]


async def test_only_those_that_were_not_read_are_read_when_the_sums_have_changed(
    database: Database,
) -> None:
    index = SearchIndex()
    async with database.writing() as tx:
        await Rows(tx).open(an_event_row("rain"), NOW_MS)
    assert await reads_of(database, index) == ([1], [1])
    async with database.writing() as tx:
        await Rows(tx, 100).open(an_event_row("late"), NOW_MS - OVERLAP_MS)
        await Rows(tx, 200).open(an_event_row("too late"), NOW_MS - OVERLAP_MS - 1)
    assert await reads_of(database, index) == ([1, 2], [2])
    assert await reads_of(database, index) == ([], [])


async def test_an_event_that_another_process_changed_is_read_again(database: Database) -> None:
    index = SearchIndex()
    async with database.writing() as tx:
        await Rows(tx).open(an_event_row("rain"), NOW_MS)
    assert await found(database, index, "storm") == []
    async with database.writing() as tx:
        values = {"title": "Storm", "updated_at_ms": NOW_MS + 1}
        await tx.execute(events.update().where(events.c.event_id == 1).values(**values))
    assert await found(database, index, "storm") == [1]


async def test_tags_are_found_once_an_event_has_them(database: Database) -> None:
    index = SearchIndex()
    async with database.writing() as tx:
        tags = (Category("Élections", "votes"), Category("Europe", "europe"))
        await Rows(tx).open(an_event_row("rain", tags=tags[:1]))
    await found(database, index, "")
    assert await index.find_tags(["election"]) == [1]
    assert await index.find_tags(["votes", "elections"]) == [1]
    assert await index.find_tags(["europe"]) == []
    async with database.writing() as tx:
        await Rows(tx, 100).open(an_event_row("snow", tags=tags))
    await found(database, index, "")
    assert await index.find_tags(["europe"]) == [2]
    assert await index.find_tags(["e"]) == [2, 1]


async def test_events_of_several_reads_are_all_found(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "EVENTS_PER_READ", 2)
    async with database.writing() as tx:
        rows = Rows(tx)
        for number in range(3):
            await rows.open(an_event_row(f"e{number}", a_market_row(f"m{number}"), tags=()))
    assert await found(database, SearchIndex(), "about") == [3, 2, 1]


async def test_a_limited_number_of_the_newest_events_is_kept(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for number in range(3):
            await rows.open(an_event_row(f"e{number}", tags=()))
    assert await found(database, SearchIndex(events_max=2), "about") == [3, 2]
