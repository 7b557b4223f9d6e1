import asyncio
from collections import Counter

import pytest
from tests.rigs.clock import CountingLoop, run_virtually

from foretell.runtime.pauses import OWED_S_MAX, TICK_S, Pauses


def test_pauses_that_a_timer_cannot_keep_are_added_to_the_next() -> None:
    """A finding: half a millisecond is no time for a timer of uvloop, and short parts had no pauses."""
    now_s, slept_s = [5.0], 0.0
    pauses = Pauses(lambda: now_s[0])
    for _ in range(100):
        now_s[0] += 0.0001
        waits_s = round(pauses.add(0.0003, 0.0001), 3)
        slept_s += waits_s
        now_s[0] += waits_s
    assert slept_s == pytest.approx(100 * 0.0003, abs=2 * TICK_S)


def test_a_pause_that_is_over_shortens_no_later_one() -> None:
    now_s = [5.0]
    pauses = Pauses(lambda: now_s[0])
    assert pauses.left_s == 0.0
    assert pauses.add(0.5) == pytest.approx(0.5)
    now_s[0] = 5.25
    assert pauses.left_s == pytest.approx(0.25)
    assert pauses.add(0.5) == pytest.approx(0.75)
    now_s[0] = 20.0
    assert pauses.left_s == 0.0
    assert pauses.add(0.5) == pytest.approx(0.5)


def test_pauses_of_work_that_was_cut_short_do_not_add_up_for_ever() -> None:
    """A finding: exports that their clients cancelled left their rests to those of others."""
    pauses = Pauses(lambda: 5.0)
    for _ in range(1_000):
        pauses.add(0.05)
    assert pauses.left_s == OWED_S_MAX


def test_attack_h1_kinds_of_work_that_share_pauses_have_one_piece_in_a_turn_of_the_loop() -> None:
    """Streams that were opened, read, answered and sent books at the same moment took a part of the loop for each."""
    loop, done, number_by_turn = CountingLoop(), list[str](), Counter[int]()

    def ask(kind: str, left: int, pauses: Pauses) -> None:
        def work() -> None:
            loop.selector.now_s += 0.001
            done.append(kind)
            number_by_turn[loop.turns] += 1
            pauses.add(0.003, 0.001)
            ask(kind, left - 1, pauses)

        if left:
            pauses.call_after(work)

    async def play() -> None:
        pauses = Pauses(loop.time)
        for kind, pieces in (("a", 3), ("b", 1), ("c", 5)):
            ask(kind, pieces, pauses)
        await asyncio.sleep(1.0)

    run_virtually(play(), loop)
    assert "".join(done) == "abcacaccc"
    assert max(number_by_turn.values()) == 1


def test_attack_h1_work_that_fails_keeps_no_other_waiting() -> None:
    loop, done = CountingLoop(), list[str]()

    def fail() -> None:
        raise MemoryError

    async def play() -> None:
        pauses = Pauses(loop.time)
        pauses.call_after(fail)
        pauses.call_after(lambda: done.append("goes on"))
        await asyncio.sleep(1.0)

    loop.set_exception_handler(lambda *_: None)
    run_virtually(play(), loop)
    assert done == ["goes on"]


def test_work_that_owes_no_pause_leaves_a_turn_of_the_loop_to_others() -> None:
    loop, turns = CountingLoop(), list[int]()

    async def play() -> None:
        pauses = Pauses(loop.time)
        for _ in range(3):
            pauses.call_after(lambda: turns.append(loop.turns))
        await asyncio.sleep(1.0)

    run_virtually(play(), loop)
    assert turns == [turns[0], turns[0] + 1, turns[0] + 2]


def test_a_kind_whose_pieces_are_cheap_has_as_much_time_as_one_whose_pieces_are_dear() -> None:
    """A finding: messages of clients were handled one by one between large books."""
    loop, used_s = CountingLoop(), {"dear": 0.0, "cheap": 0.0}

    def ask(kind: str, piece_s: float, pauses: Pauses) -> None:
        def work() -> None:
            loop.selector.now_s += piece_s
            used_s[kind] += piece_s
            pauses.add(3.0 * piece_s, piece_s, kind)
            ask(kind, piece_s, pauses)

        pauses.call_after(work, kind)

    async def play() -> None:
        pauses = Pauses(loop.time)
        ask("dear", 0.05, pauses)
        await asyncio.sleep(4.0)
        ask("cheap", 0.001, pauses)
        before = used_s["dear"]
        await asyncio.sleep(4.0)
        assert used_s["dear"] - before == pytest.approx(used_s["cheap"], abs=0.1)

    run_virtually(play(), loop)
    assert used_s["cheap"] > 0.4


def test_what_a_kind_used_while_nobody_waited_is_not_held_against_it() -> None:
    """A finding: messages that were handled for hours would have waited for as many hours of books."""
    loop, done = CountingLoop(), list[str]()

    def ask(kind: str, pauses: Pauses) -> None:
        def work() -> None:
            loop.selector.now_s += 0.01
            done.append(kind)
            pauses.add(0.03, 0.01, kind)
            ask(kind, pauses)

        pauses.call_after(work, kind)

    async def play() -> None:
        pauses = Pauses(loop.time)
        pauses.call_after(lambda: None, "messages")
        await asyncio.sleep(1.0)
        for _ in range(1_000):
            pauses.add(0.03, 0.01, "messages")
            await asyncio.sleep(0.1)
        ask("books", pauses)
        ask("messages", pauses)
        await asyncio.sleep(1.0)

    run_virtually(play(), loop)
    assert done.count("messages") == pytest.approx(done.count("books"), abs=1)
