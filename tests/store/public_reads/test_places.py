"""Places of public reads: fair, bounded, and never lost."""

import asyncio
import weakref

import pytest

from foretell.domain.errors.http import TooManyRequests
from foretell.domain.errors.storage import ReadsBusy
from foretell.store.public_reads.places import ReadPlaces, WaitBounds

pytestmark = pytest.mark.anyio

SOON_S = 0.05


async def queued(places: ReadPlaces, *clients: str) -> list["asyncio.Task[None]"]:
    """Return the takes of clients, begun in this order."""
    takes = [asyncio.create_task(places.take(client)) for client in clients]
    await asyncio.sleep(0)
    return takes


async def drain(takes: list["asyncio.Task[None]"]) -> None:
    for take in takes:
        take.cancel()
    await asyncio.gather(*takes, return_exceptions=True)


async def test_a_client_has_only_its_part_of_the_places() -> None:
    places = ReadPlaces(3, 2)
    takes = await queued(places, "a", "a", "a", "b")
    assert [take.done() for take in takes] == [True, True, False, True]
    await drain(takes)


async def test_free_places_go_to_the_clients_in_turn() -> None:
    places = ReadPlaces(1, 1)
    order: list[str] = []

    async def read(client: str) -> None:
        await places.take(client)
        order.append(client)
        await asyncio.sleep(0)
        places.release(client)

    await asyncio.gather(*map(read, "aaabbc"))
    assert "".join(order) == "aabcab"
    assert places.waiting == 0


async def test_a_client_at_its_part_does_not_block_the_next() -> None:
    places = ReadPlaces(2, 1)
    takes = await queued(places, "a", "b", "a", "c")
    places.release("b")
    await asyncio.sleep(0)
    assert [take.done() for take in takes] == [True, True, False, True]
    await drain(takes)


async def test_more_than_may_wait_is_refused_at_once() -> None:
    places = ReadPlaces(1, 1, WaitBounds(wait_s=3, per_client=2, total=3))
    takes = await queued(places, "a", "a", "a", "b")
    with pytest.raises(TooManyRequests) as own:
        await places.take("a")
    takes += await queued(places, "b")
    assert await outcomes(takes) == ["place", "waits", "ReadsBusy", "waits", "waits"]
    with pytest.raises(TooManyRequests):
        await places.take("b")
    assert own.value.retry_after_s == 3
    await drain(takes)


async def outcomes(takes: list["asyncio.Task[None]"]) -> list[str]:
    """Return what came of each take by now: a place, a refusal's name, or that it waits."""
    await asyncio.sleep(0)
    return [
        "waits"
        if not take.done()
        else type(failure).__name__
        if (failure := take.exception())
        else "place"
        for take in takes
    ]


async def test_a_newcomer_is_let_into_a_full_queue_and_a_client_with_most_reads_loses_its_newest() -> (
    None
):
    """Few strangers filled the queue of keys, and a trader's cancel was refused as its key had to be read again."""
    places = ReadPlaces(1, 1, WaitBounds(wait_s=60, per_client=500, total=4))
    takes = await queued(places, "held", "a", "b", "b", "b", "newcomer")
    assert await outcomes(takes) == ["place", "waits", "waits", "waits", "ReadsBusy", "waits"]
    assert places.waiting == 4
    with pytest.raises(ReadsBusy) as full:
        await places.take("b")
    assert full.value.retry_after_s == 60
    await drain(takes)
    assert places.waiting == 0


async def test_two_strangers_do_not_keep_a_third_client_out() -> None:
    places = ReadPlaces(1, 1, WaitBounds(wait_s=60, per_client=1, total=2))
    takes = await queued(places, "a", "a", "b", "c")
    assert await outcomes(takes) == ["place", "waits", "ReadsBusy", "waits"]
    places.release("a")
    places.release("a")
    assert await outcomes(takes) == ["place", "place", "ReadsBusy", "place"]


async def test_a_read_that_is_refused_and_cancelled_at_once_gives_no_place_back() -> None:
    places = ReadPlaces(1, 1, WaitBounds(wait_s=60, per_client=9, total=1))
    held, refused = await queued(places, "held", "a")
    newcomer = asyncio.create_task(places.take("b"))
    asyncio.get_running_loop().call_soon(refused.cancel)
    takes = [held, refused, newcomer]
    await asyncio.gather(refused, return_exceptions=True)
    assert refused.cancelled()
    assert not newcomer.done(), "the place is held"
    await drain(takes)


async def test_a_wait_that_is_too_long_ends_with_its_cause() -> None:
    places = ReadPlaces(1, 1, WaitBounds(wait_s=SOON_S))
    await places.take("a")
    with pytest.raises(TooManyRequests):
        await places.take("a")
    with pytest.raises(ReadsBusy):
        await places.take("b")
    assert places.waiting == 0


async def test_a_cancelled_wait_gives_its_place_to_the_next() -> None:
    places = ReadPlaces(1, 1)
    _, leaves, gets, later = await queued(places, "a", "b", "c", "d")
    places.release("a")
    leaves.cancel()
    await asyncio.wait_for(gets, 60)
    later.cancel()
    await asyncio.gather(leaves, later, return_exceptions=True)
    assert places.waiting == 0
    places.release("c")
    await places.take("a")


async def test_a_place_is_not_given_to_a_wait_that_was_just_cancelled() -> None:
    places = ReadPlaces(1, 1)
    _, leaves, also_leaves, gets = await queued(places, "a", "b", "b", "c")
    leaves.cancel()
    also_leaves.cancel()
    places.release("a")
    await asyncio.wait_for(gets, 60)
    await asyncio.gather(leaves, also_leaves, return_exceptions=True)
    assert places.waiting == 0


@pytest.mark.usefixtures("uncollected")
async def test_attack_h1_a_read_that_is_refused_leaves_no_garbage() -> None:
    """A refusal kept its whole request until the collector came, which then took up to 90 ms of the loop."""
    places = ReadPlaces(1, 1, WaitBounds(wait_s=60, per_client=2, total=3))
    takes = await queued(places, "held", "a", "a", "a", "b", "c", "b")
    await asyncio.sleep(0)
    failures = [weakref.ref(take.exception()) for take in takes if take.done() and take.exception()]
    kinds = [type(each()) for each in failures]
    await drain(takes)
    del takes
    await asyncio.sleep(0)
    assert kinds == [ReadsBusy, TooManyRequests, ReadsBusy]
    assert [each() for each in failures] == [None] * 3
