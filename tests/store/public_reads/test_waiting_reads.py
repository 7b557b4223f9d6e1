"""The queue of waiting reads against a slow, obvious one."""

import asyncio
import contextlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.store.public_reads.waiting_reads import Place, WaitingReads

CLIENTS = "abc"
STEPS = ("add", "next", "newest", "discard")


class PlainReads:
    """The same as lists, whose clients are compared each time."""

    def __init__(self) -> None:
        self.places_by_client: dict[str, list[Place]] = {}
        self.grown: list[str] = []
        """The clients in the order in which the numbers of their reads changed."""

    def change(self, client: str, places: list[Place]) -> None:
        if places:
            self.places_by_client[client] = places
        else:
            del self.places_by_client[client]
        self.grown = [each for each in self.grown if each != client] + [client]

    @property
    def most(self) -> int:
        return max(map(len, self.places_by_client.values()), default=0)

    def client_with_most(self) -> str:
        equal = [each for each, places in self.places_by_client.items() if len(places) == self.most]
        return max(equal, key=self.grown.index)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        yield loop


@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(CLIENTS))))
def test_it_is_as_the_plain_one(
    loop: asyncio.AbstractEventLoop, steps: list[tuple[str, str]]
) -> None:
    reads, plain = WaitingReads(), PlainReads()
    for step, client in steps:
        places = list(plain.places_by_client.get(client, []))
        match step:
            case "add":
                place = loop.create_future()
                reads.add(client, place)
                plain.change(client, [*places, place])
            case "next" if places:
                assert reads.take_next(client) is places.pop(0)
                plain.places_by_client.pop(client)
                plain.places_by_client[client] = []  # its next turn is after all others'
                plain.change(client, places)
            case "newest" if plain.most:
                loses = plain.client_with_most()
                *left, newest = plain.places_by_client[loses]
                assert reads.take_newest_of_most() is newest
                plain.change(loses, left)
            case _:
                place = places.pop(len(places) // 2) if places else loop.create_future()
                reads.discard(client, place)
                if client in plain.places_by_client:
                    plain.change(client, places)
        assert list(reads) == list(plain.places_by_client)
        assert reads.most == plain.most
        assert len(reads) == sum(map(len, plain.places_by_client.values()))
        assert [reads.count_of(each) for each in CLIENTS] == [
            len(plain.places_by_client.get(each, [])) for each in CLIENTS
        ]
