"""Who wakes when a commit announced something."""

import asyncio

import pytest

from foretell.store.topics import Topics, Watch

pytestmark = pytest.mark.anyio

SOON_S = 5.0


async def is_woken(watch: Watch) -> bool:
    return await watch.wait(0)


async def test_a_watch_sleeps_till_its_time_is_over() -> None:
    assert not await Topics().watch(["fills"]).wait(0.01)


async def test_a_watch_that_waits_is_woken() -> None:
    topics = Topics()
    watch = topics.watch(["fills"])
    asyncio.get_running_loop().call_soon(topics.announce, ["fills"])
    assert await watch.wait(SOON_S)


async def test_what_was_announced_while_nobody_waited_is_not_missed() -> None:
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


async def test_a_watch_hears_its_own_topics_alone() -> None:
    topics = Topics()
    fills, keys, both = (
        topics.watch(["fills"]),
        topics.watch(["keys"]),
        topics.watch(["fills", "keys"]),
    )
    topics.announce(["keys", "unheard"])
    assert [await is_woken(watch) for watch in (fills, keys, both)] == [False, True, True]


async def test_every_watch_of_a_topic_is_woken() -> None:
    topics = Topics()
    watches = [topics.watch(["fills"]) for _ in range(3)]
    topics.announce(["fills"])
    assert [await is_woken(watch) for watch in watches] == [True, True, True]


async def test_all_are_woken_when_something_may_have_been_missed() -> None:
    topics = Topics()
    watches = [topics.watch(["fills"]), topics.watch(["keys"])]
    topics.announce_all()
    assert [await is_woken(watch) for watch in watches] == [True, True]
