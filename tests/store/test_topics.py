"""Watches: they wake when a commit announced one of their topics."""

import asyncio

import pytest

from foretell.runtime.watch import Watch
from foretell.store.topics import Topics

pytestmark = pytest.mark.anyio

SOON_S = 60.0


async def is_woken(watch: Watch) -> bool:
    return await watch.wait(0)


async def test_a_waiting_watch_is_woken() -> None:
    topics = Topics()
    watch = topics.watch(["fills"])
    asyncio.get_running_loop().call_soon(topics.announce, ["fills"])
    assert await watch.wait(SOON_S)


async def test_an_announcement_before_the_wait_is_not_missed() -> None:
    topics = Topics()
    watch = topics.watch(["fills"])
    topics.announce(["fills"])
    assert await is_woken(watch)


async def test_several_announcements_wake_once() -> None:
    topics = Topics()
    watch = topics.watch(["fills", "keys"])
    topics.announce(["fills", "keys"])
    topics.announce(["fills"])
    assert await is_woken(watch)
    assert not await is_woken(watch)


async def test_a_watch_wakes_for_its_own_topics_only() -> None:
    topics = Topics()
    fills, keys, both = (
        topics.watch(["fills"]),
        topics.watch(["keys"]),
        topics.watch(["fills", "keys"]),
    )
    topics.announce(["keys", "unwatched"])
    assert [await is_woken(watch) for watch in (fills, keys, both)] == [False, True, True]


async def test_every_watch_of_a_topic_is_woken() -> None:
    topics = Topics()
    watches = [topics.watch(["fills"]) for _ in range(3)]
    topics.announce(["fills"])
    assert [await is_woken(watch) for watch in watches] == [True, True, True]


async def test_every_watch_wakes_when_announcements_may_have_been_missed() -> None:
    topics = Topics()
    watches = [topics.watch(["fills"]), topics.watch(["keys"])]
    topics.announce_all()
    assert [await is_woken(watch) for watch in watches] == [True, True]
