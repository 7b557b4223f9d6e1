import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import pytest
from typing_extensions import override

from foretell.domain.errors.http import TooManyRequests
from foretell.domain.errors.storage import ReadsBusy
from foretell.edge.read_answers import TaggedContent, TaggedParts
from foretell.store.public_reads.places import WaitBounds, client_name
from foretell.store.public_reads.rests import ALL_CLIENTS
from foretell.trading.books.market_pages import PAGE_LIMITS, MarketPages, PageLimits

pytestmark = pytest.mark.anyio

Value = TypeVar("Value")


class Rendering:
    """A render that waits until it may end, and counts how often it began."""

    def __init__(self, content: bytes = b"page") -> None:
        self.page: TaggedContent = TaggedParts(content).end()
        self.count = 0
        self.readers: set[str] = set()
        self.may_end = asyncio.Event()

    async def run(self) -> TaggedContent:
        self.count += 1
        self.readers.add(client_name.get())
        await self.may_end.wait()
        return self.page


def asking(
    pages: MarketPages, key: str, rendering: Rendering, client: str = "one"
) -> asyncio.Task[TaggedContent]:
    """Return the task of a request of a client."""

    async def ask() -> TaggedContent:
        client_name.set(client)  # of its own task
        return await pages.get(key, rendering.run)

    return asyncio.create_task(ask())


async def within(work: Awaitable[Value]) -> Value:
    """Return what the work returns; a render that nobody ends would hang."""
    async with asyncio.timeout(60):
        return await work


async def turn() -> None:
    """Let every task come to where it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_all_who_ask_for_a_page_at_once_share_one_render() -> None:
    pages, rendering = MarketPages(), Rendering()
    asked = [asking(pages, "key", rendering, client) for client in ("one", "one", "two", "three")]
    await turn()
    rendering.may_end.set()
    assert await within(asyncio.gather(*asked)) == [rendering.page] * 4
    assert rendering.count == 1
    assert rendering.readers == {ALL_CLIENTS}
    assert client_name.get() == ""


async def test_a_page_is_kept_for_its_time_from_the_beginning_of_its_render() -> None:
    now_s = [10.0]
    pages, rendering = MarketPages(now_s=lambda: now_s[0]), Rendering()
    asked = asking(pages, "key", rendering)
    await turn()
    now_s[0] = 10.5
    rendering.may_end.set()
    await asked
    for at_s, count in ((10.9, 1), (11.0, 2), (11.9, 2), (12.0, 3)):
        now_s[0] = at_s
        assert await pages.get("key", rendering.run) == rendering.page
        assert rendering.count == count


async def test_a_render_that_takes_longer_than_pages_are_kept_is_shared_too() -> None:
    now_s = [10.0]
    pages, first, rendering = MarketPages(now_s=lambda: now_s[0]), Rendering(), Rendering()
    before = asking(pages, "other", first)
    await turn()
    asked = [asking(pages, "key", rendering, client) for client in ("one", "two")]
    await turn()
    first.may_end.set()
    await before
    await turn()
    now_s[0] = 20.0
    rendering.may_end.set()
    await within(asyncio.gather(*asked))
    assert rendering.count == 1


async def test_one_page_is_rendered_at_a_time() -> None:
    pages, first, second = MarketPages(), Rendering(), Rendering()
    one, two = asking(pages, "1", first), asking(pages, "2", second, "two")
    await turn()
    assert (first.count, second.count, pages.waiting) == (1, 0, 1)
    first.may_end.set()
    second.may_end.set()
    await within(asyncio.gather(one, two))
    assert (second.count, pages.waiting) == (1, 0)


async def test_a_client_with_many_requests_does_not_delay_another() -> None:
    pages, flood, before = MarketPages(), Rendering(), list[int]()

    class Wanted(Rendering):
        @override
        async def run(self) -> TaggedContent:
            before.append(flood.count)
            return self.page

    flooding = [asking(pages, f"flood {number}", flood) for number in range(10)]
    await turn()
    asked = asking(pages, "wanted", Wanted(), "two")
    await turn()
    flood.may_end.set()
    await within(asyncio.gather(asked, *flooding))
    assert (before, flood.count) == ([2], 10)


async def test_a_cancelled_render_leaves_the_page_to_the_next_who_asks() -> None:
    pages, rendering = MarketPages(), Rendering()
    first, second = (asking(pages, "key", rendering, client) for client in ("one", "two"))
    await turn()
    first.cancel()
    rendering.may_end.set()
    assert await within(second) == rendering.page
    assert (rendering.count, pages.waiting) == (2, 0)
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_failed_render_leaves_the_page_to_the_next_who_asks() -> None:
    pages, rendering, place = MarketPages(), Rendering(), asyncio.Event()
    rendering.may_end.set()

    async def fail() -> TaggedContent:
        await place.wait()
        raise ConnectionError

    failing = asyncio.create_task(pages.get("key", fail))
    await turn()
    asked = asking(pages, "key", rendering, "two")
    await turn()
    place.set()
    assert await within(asked) == rendering.page
    with pytest.raises(ConnectionError):
        await failing
    assert len(pages) == 1


async def test_the_oldest_pages_go_when_they_are_too_many_or_too_large() -> None:
    pages = MarketPages(PageLimits(pages_max=3, bytes_max=10), lambda: 0.0)
    four, too_large = Rendering(b"1234"), Rendering(bytes(11))
    for rendering in (four, too_large):
        rendering.may_end.set()
    for key in "abc":
        await pages.get(key, four.run)
        assert pages.size_bytes <= 10
    assert (len(pages), four.count) == (2, 3)
    await pages.get("c", four.run)
    assert four.count == 3
    await pages.get("a", four.run)
    assert four.count == 4
    for _ in range(2):
        assert await pages.get("large", too_large.run) == too_large.page
    assert (too_large.count, len(pages), pages.size_bytes) == (2, 2, 8)
    one = Rendering(b"1")
    one.may_end.set()
    for key in "defg":
        await pages.get(key, one.run)
    assert (len(pages), pages.size_bytes) == (3, 3)


async def test_those_who_wait_are_bounded_for_a_client_and_for_all() -> None:
    pages, rendering = MarketPages(PageLimits(bounds=WaitBounds(60.0, 2, 3))), Rendering()
    waiting = [asking(pages, key, rendering, client) for key, client in ("11", "21", "31", "42")]
    await turn()
    assert pages.waiting == 3
    with pytest.raises(TooManyRequests):
        await asking(pages, "4", rendering, "1")
    newcomer = asking(pages, "4", rendering, "3")
    with pytest.raises(ReadsBusy):
        await waiting.pop(2)
    assert pages.waiting == 3
    rendering.may_end.set()
    await within(asyncio.gather(*waiting, newcomer))


async def test_who_waits_for_too_long_is_refused() -> None:
    pages, rendering = MarketPages(PageLimits(bounds=WaitBounds(0.01))), Rendering()
    held = asking(pages, "1", rendering)
    await turn()
    with pytest.raises(TooManyRequests):
        await asking(pages, "2", rendering)
    with pytest.raises(ReadsBusy):
        await asking(pages, "2", rendering, "two")
    rendering.may_end.set()
    await within(held)


def test_the_bounds_are_those_that_the_page_states() -> None:
    reference = (Path(__file__).parents[3] / "docs" / "reference" / "trading-api.md").read_text()
    stated = " ".join(reference.partition("### Markets")[2].partition("\n##")[0].split())
    (wait_s, per_client, total), kept_s = PAGE_LIMITS.bounds, PAGE_LIMITS.kept_s
    assert f"kept for {kept_s} second from the beginning of its computation" in stated
    assert f"`public, max-age={kept_s}`" in stated
    assert f"for up to {wait_s:g} s: {per_client:,} of one address and {total:,} of all" in stated
    assert PAGE_LIMITS.renders == 1
