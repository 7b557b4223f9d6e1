"""Messages of many streams are handled one at a time, of each client in turn, in a quarter of the loop's time."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import pytest
from tests.rigs.clock import VirtualLoop, run_virtually

from foretell.runtime.pauses import Pauses
from foretell.trading.streams.message_turns import PAUSE_FACTOR, MessageTurns

MESSAGE_S: Final = 0.0006
STREAMS: Final = 300


class Handling:
    """Messages whose handling takes time of the loop, and what was done in its turns."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.turns = MessageTurns(Pauses(self.loop.time), self.loop.time)
        self.done: list[str] = []
        self.ended_s = 0.0

    def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        run_virtually(work(), self.loop)

    def send(self, client: str) -> "asyncio.Task[None]":
        """Have a message of a client handled."""
        return asyncio.create_task(self.turns.run(client, partial(self.handle, client)))

    async def handle(self, client: str) -> None:
        self.loop.selector.now_s += MESSAGE_S
        self.done.append(client)
        self.ended_s = self.loop.time()

    async def note_turns(self) -> None:
        """Note each turn of the loop."""
        while True:
            self.done.append("-")
            await asyncio.sleep(MESSAGE_S / 10)

    @property
    def handled(self) -> str:
        return "".join(self.done).replace("-", "")


def test_attack_h1_dear_messages_of_many_streams_are_handled_one_in_a_turn_of_the_loop() -> None:
    """A message of each of 300 streams, which named 120 markets, was handled before an order was read."""
    handling = Handling()

    async def flood() -> None:
        noting = asyncio.create_task(handling.note_turns())
        await asyncio.gather(*(handling.send("a") for _ in range(STREAMS)))
        noting.cancel()

    handling.run(flood)
    assert len(handling.handled) == STREAMS
    assert max(map(len, "".join(handling.done).split("-"))) == 1
    assert handling.ended_s == pytest.approx((1 + PAUSE_FACTOR) * STREAMS * MESSAGE_S, rel=0.01)


def test_a_message_that_comes_alone_is_handled_at_once() -> None:
    handling = Handling()

    async def send() -> None:
        for _ in range(3):
            await handling.turns.run("a", partial(handling.handle, "a"))
            assert handling.loop.time() == handling.ended_s
            await asyncio.sleep(1.0)

    handling.run(send)
    assert handling.handled == "aaa"


def test_attack_h1_a_client_with_few_messages_waits_for_one_of_each_other_client() -> None:
    handling = Handling()

    async def flood() -> None:
        sent = [handling.send(client) for client in "aaaaabbbbbc"]
        await asyncio.gather(*sent)

    handling.run(flood)
    assert handling.handled == "aabcabababb"


def test_a_stream_that_ends_before_its_turn_keeps_out_no_other() -> None:
    handling = Handling()

    async def leave() -> None:
        first, leaving, last = (handling.send(client) for client in "abc")
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(first, last)

    handling.run(leave)
    assert handling.handled == "ac"


def test_a_message_that_fails_counts_and_what_a_message_waits_for_does_not() -> None:
    handling = Handling()

    async def fail() -> None:
        await asyncio.sleep(5.0)
        handling.loop.selector.now_s += MESSAGE_S
        raise ConnectionError

    async def play() -> None:
        failing = asyncio.create_task(handling.turns.run("a", fail))
        await asyncio.sleep(0)
        await handling.send("b")
        assert handling.ended_s < 1.0
        with pytest.raises(ConnectionError):
            await failing
        failed_s = handling.loop.time()
        await handling.send("c")
        assert handling.ended_s == pytest.approx(failed_s + (1 + PAUSE_FACTOR) * MESSAGE_S)

    handling.run(play)
