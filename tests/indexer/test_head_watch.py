"""Heads that stand still or jump, or whose times differ from the clock."""

import asyncio
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs
from tests.indexer.test_worker import DEADLINE_S, reached_head, running
from tests.rigs.sandbox import Sandbox, an_indexer

from foretell.indexer.head_clock import DIFFERENCE, DIFFERENCE_S_MAX, HeadClock
from foretell.indexer.head_watch import JUMP_BLOCKS, HeadWatch
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

STILL_S = 60.0
Seen = list[tuple[int, float]]


def logged(heads: Seen, still_after_s: float | None = STILL_S) -> list[tuple[str, int]]:
    """Return the events that are logged for these heads, each with its block."""
    watch = HeadWatch(still_after_s)
    with capture_logs() as logs:
        for head, at_s in heads:
            watch.see(head, at_s)
    return [(each["event"].removeprefix("chain's head "), each["block"]) for each in logs]


@pytest.mark.case("E-05")
@pytest.mark.parametrize(
    ("heads", "wanted"),
    [
        ([(7, 0), (8, 59), (9, 118), (9, 177)], []),
        ([(7, 0), (7, 59.9), (7, 60), (7, 600)], [("stands still", 7)]),
        ([(7, 0), (7, 60), (8, 90), (8, 149)], [("stands still", 7), ("goes on", 8)]),
        ([(7, 0), (6, 1), (7, 2)], []),
        ([(7, 0), (7 + JUMP_BLOCKS, 1)], []),
        ([(7, 0), (8 + JUMP_BLOCKS, 1)], [("jumped", 8 + JUMP_BLOCKS)]),
        ([(10**6, 0)], []),
    ],
)
def test_a_head_that_is_out_of_order_is_logged_once(heads: Seen, wanted: list[object]) -> None:
    assert logged(heads) == wanted


@pytest.mark.case("E-05")
def test_a_chain_without_blocks_while_nothing_happens_is_not_called_still() -> None:
    assert logged([(7, 0), (7, 10**6)], None) == []


@pytest.mark.case("E-05")
async def test_the_worker_reports_a_head_that_stands_still_goes_on_and_goes_back(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    context = an_indexer(fresh_sandbox, database, head_still_s=0.05)
    with capture_logs() as logs:

        async def until(event: str) -> None:
            is_there: Callable[[], bool] = lambda: any(  # noqa: E731
                each["event"].endswith(event) for each in logs
            )
            async with asyncio.timeout(DEADLINE_S):
                while not is_there():  # noqa: ASYNC110 - the worker publishes no event
                    await asyncio.sleep(0.01)

        async with running(context):
            await until("stands still")
            snapshot = await fresh_sandbox.rpc.send("evm_snapshot")
            await fresh_sandbox.mine(3)
            await until("goes on")
            await reached_head(fresh_sandbox, database)
            assert await fresh_sandbox.rpc.send("evm_revert", snapshot)
            await until("blocks were unwound")


def differences(seen: list[tuple[int, float]]) -> list[tuple[str, int]]:
    """Return what is logged for heads of this number that are seen so many seconds after their time."""
    at_s = 0.0
    clock = HeadClock(lambda: int(at_s * 1000))
    with capture_logs() as logs:
        for head, late_s in seen:
            at_s = 1_000_000 + late_s
            clock.see(head, 1_000_000)
    assert {each["log_level"] for each in logs} <= {"warning"}
    return [(each["event"].split()[1], each["seconds"]) for each in logs]


@pytest.mark.case("J-01")
@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        ([(1, 0), (2, DIFFERENCE_S_MAX), (3, -DIFFERENCE_S_MAX)], []),
        ([(1, 0), (2, 61), (3, 62), (4, 60)], [("differs", 61), ("agrees", 60)]),
        ([(1, 0), (2, -3_600), (3, -3_600)], [("differs", -3_600)]),
        ([(1, 9_000), (2, 1)], []),
        ([(1, 0), (2, 1), (2, 9_000), (1, 9_000)], []),
    ],
    ids=["agrees", "is ahead", "is behind", "an old first head", "old heads"],
)
def test_a_clock_that_differs_from_the_times_of_new_heads_is_logged_once(
    seen: list[tuple[int, float]], wanted: list[object]
) -> None:
    assert differences(seen) == wanted


@pytest.mark.case("J-01")
async def test_the_worker_measures_the_clock_by_new_heads(
    fresh_sandbox: Sandbox, database: Database
) -> None:
    DIFFERENCE.set(0)
    await fresh_sandbox.mine()
    head = await fresh_sandbox.reader.header()
    assert head is not None
    clock = HeadClock(lambda: head.timestamp_s * 1000)
    context = an_indexer(fresh_sandbox, database, head_clock=clock)
    with capture_logs() as logs:
        async with running(context):
            await reached_head(fresh_sandbox, database)
            await fresh_sandbox.rpc.send("evm_increaseTime", 3_600)
            await fresh_sandbox.mine()
            await reached_head(fresh_sandbox, database)
            async with asyncio.timeout(DEADLINE_S):
                while not any(each["event"].startswith("clock differs") for each in logs):  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)
    assert DIFFERENCE._value.get() == pytest.approx(-3_600, abs=300)
