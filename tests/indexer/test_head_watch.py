"""Heads that stand still or jump."""

import asyncio
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs
from tests.indexer.test_worker import DEADLINE_S, reached_head, running
from tests.rigs.sandbox import Sandbox, an_indexer

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
