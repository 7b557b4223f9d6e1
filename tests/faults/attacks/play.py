"""Play each attack beside a trader, and judge it: `python tests/run.py faults.attacks.play --scale 1`.

A sandbox serves a trader who places and cancels orders over one kept connection, first alone and
then beside an attacker in a process of its own. Prints both latencies, what the attacker held, and the memory
of the server; ends with 1 if a figure misses its bar. The latency is judged at full scale only, and only if
no other program disturbed it. An attack whose latency misses is played twice more.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.faults.attacks.attacker import (
    CHUNKS,
    PAYLOADS,
    REQUESTS,
    SLOW_READERS,
    UNREAD,
    UNREAD_OF_ONE,
    UNREAD_PAGES,
)
from tests.faults.attacks.outcome import (
    CLOSED,
    HELD,
    IDLE,
    MEMORY_RATIO_MAX,
    READ_BY_NOBODY,
    SLOW_HEADS,
    Outcome,
    head,
    misses_of,
    row_of,
)
from tests.faults.attacks.target import Target, Watch, a_target
from tests.faults.attacks.watcher import LOOK_S
from tests.rigs.installation import Running

from foretell.bench.rigs.machine import usage_with

CONNECTIONS: Final = {
    IDLE: 10_000,
    SLOW_HEADS: 2_000,
    "upgrades-with-body": 2_000,
    "bodies": 800,
    "frames": 1,
    "pipelined": 100,
    SLOW_READERS: 300,
    UNREAD: 600,
    UNREAD_OF_ONE: 900,
    UNREAD_PAGES: 900,
    REQUESTS: 1_000,
    PAYLOADS: 300,
    CHUNKS: 50,
}
"""Of each attack at scale 1."""
MARKETS: Final = 120
"""Besides the sandbox's own, at scale 1; slow readers ask for the books of all."""
ATTACKER: Final = Path(__file__).with_name("attacker.py")
SECONDS: Final = 20.0
"""For which the trader trades alone, and then beside an attack: of fewer orders a p99 is one or two that had bad luck."""
FIRST_S: Final = 3.0
"""For which the trader trades before anything is measured."""
BEGINS_WITHIN_S: Final = 600.0
"""Until each connection of an attack has been open: beside busy processes an attacker has little time."""
HELD_WITHIN_S: Final = 300.0
ENDS_WITHIN_S: Final = 300.0
GIVEN_BACK_WITHIN_S: Final = 150.0
"""Until memory is given back: streams are kept for a minute after their end, and a process gives free memory back each minute."""
PLAYS_OF_SLOW: Final = 3
"""Of an attack whose latency misses its bar at first. A disk that stands still for a moment moves a p99, and no other program
is to blame. It has missed if it does so in most plays, and every other bar counts in each.
"""
LOG_LINES_PER_MINUTE_MAX: Final = 60
"""Of all that attacks make the installation print: ten lines a minute of each of a few causes."""
MINUTE_S: Final = 60.0


class Siege:
    """Attacks on one target, one after the other."""

    def __init__(self, target: Target, faults: int) -> None:
        self._target = target
        self._before_bytes = target.resident_bytes()
        self._children_before_bytes = target.children_bytes()
        self._faults = faults
        self._log_lines = target.log_lines()
        self._began_s = time.monotonic()

    @classmethod
    async def begin(cls, target: Target) -> "Siege":
        """Trade for a moment, and note what is compared with later."""
        await target.trade(FIRST_S)
        return cls(target, await target.faults())

    async def endure(self, way: str, connections: int, seconds: float) -> Outcome:
        """Trade alone, and then beside an attack."""
        target = self._target
        quiet = usage_with(target.pid)
        alone = await target.trade(seconds)
        others_cores = quiet.others_cores(usage_with(target.pid))
        refused_before = await target.refused_reads()
        async with target.watched() as watch, self._attacked(way, connections) as attacker:
            if connections >= CONNECTIONS[way]:
                _yield_processors(attacker.pid, watch.pid)
            loud = usage_with(target.pid, attacker.pid, watch.pid)
            beside = await target.trade(seconds)
            others_beside = loud.others_cores(usage_with(target.pid, attacker.pid, watch.pid))
            assert attacker.returncode is None, "the attack went on until the end"
            await self._until_effective(watch, way, connections, refused_before)
            if way in CLOSED and connections >= CONNECTIONS[way]:
                await _until_one_is_closed(attacker)
            output, _ = await asyncio.wait_for(attacker.communicate(b""), ENDS_WITHIN_S)
            assert await attacker.wait() == 0
        ended_s, seen = time.monotonic(), watch.seen
        after_bytes, children_after_bytes = await self._settled_bytes()
        given_back_s = time.monotonic() - ended_s
        return Outcome(
            way=way,
            connections=connections,
            alone=alone,
            beside=beside,
            held=seen.connections,
            unsent_bytes=seen.unsent_bytes,
            refused_reads=await target.refused_reads() - refused_before,
            **json.loads(output.splitlines()[-1]),
            before_bytes=self._before_bytes,
            most_bytes=seen.resident_bytes,
            after_bytes=after_bytes,
            children_before_bytes=self._children_before_bytes,
            children_after_bytes=children_after_bytes,
            given_back_s=given_back_s,
            others_cores=max(others_cores, others_beside),
        )

    async def plays(self, way: str, scale: float, seconds: float) -> AsyncIterator[Outcome]:
        """Play an attack, and again if it is whole and its latency misses the bar."""
        connections = max(1, round(CONNECTIONS[way] * scale))
        outcome = await self.endure(way, connections, seconds)
        yield outcome
        if scale >= 1 and outcome.is_slow:
            for _ in range(PLAYS_OF_SLOW - 1):
                yield await self.endure(way, connections, seconds)

    async def misses(self) -> list[str]:
        """Return what the attacks left behind and must not, in words."""
        target = self._target
        faults = await target.faults() - self._faults
        lines = target.log_lines() - self._log_lines
        minutes = 1 + (time.monotonic() - self._began_s) / MINUTE_S
        bars = {
            f"failures of the server in /metrics {faults} <= 0": faults <= 0,
            f"lines of the log {lines} <= {LOG_LINES_PER_MINUTE_MAX} a minute": (
                lines <= LOG_LINES_PER_MINUTE_MAX * minutes
            ),
            "no traces in the log": "Traceback" not in target.log(),
        }
        return [words for words, is_met in bars.items() if not is_met]

    @asynccontextmanager
    async def _attacked(self, way: str, connections: int) -> AsyncIterator[Process]:
        """Give an attacker that has begun."""
        arguments = (way, str(self._target.port), str(connections))
        pipe = asyncio.subprocess.PIPE
        attacker = await asyncio.create_subprocess_exec(
            sys.executable, str(ATTACKER), *arguments, stdin=pipe, stdout=pipe
        )
        try:
            assert attacker.stdin is not None
            attacker.stdin.write(json.dumps(self._target.condition_ids).encode() + b"\n")
            await attacker.stdin.drain()
            assert attacker.stdout is not None
            line = await asyncio.wait_for(attacker.stdout.readline(), BEGINS_WITHIN_S)
            assert line == b"began\n"
            yield attacker
        finally:
            if attacker.returncode is None:
                attacker.kill()

    async def _settled_bytes(self) -> tuple[int, int]:
        """Return the memory of the server and of its other processes, once it is near that of before, or after some time."""
        give_up_at_s = time.monotonic() + GIVEN_BACK_WITHIN_S
        while True:
            seen = self._target.resident_bytes(), self._target.children_bytes()
            if self._is_near_before(*seen) or time.monotonic() >= give_up_at_s:
                return seen
            await asyncio.sleep(LOOK_S)

    def _is_near_before(self, serving_bytes: int, children_bytes: int) -> bool:
        return (
            serving_bytes <= MEMORY_RATIO_MAX * self._before_bytes
            and children_bytes <= MEMORY_RATIO_MAX * self._children_before_bytes
        )

    async def _until_effective(
        self, watch: Watch, way: str, connections: int, refused_before: int
    ) -> None:
        """Wait until an attack has what it wants, or for some time; it is judged later.

        The server has accepted the connections that it keeps, answers those who read nothing, and refuses the one
        address that asks for more.
        """
        give_up_at_s = time.monotonic() + HELD_WITHIN_S
        while time.monotonic() < give_up_at_s:
            is_held = way not in HELD or watch.seen.connections >= connections
            is_unread = way not in READ_BY_NOBODY or watch.seen.unsent_bytes > 0
            is_refused = way != UNREAD_OF_ONE or await self._target.refused_reads() > refused_before
            if is_held and is_unread and is_refused:
                break
            await asyncio.sleep(LOOK_S)


def _yield_processors(*pids: int) -> None:
    """Let processes run only where others leave time.

    The others of an attack would be on other machines. One that is only nice delays each process that wakes up beside it
    by milliseconds, and an order wakes up several.
    """
    if sys.platform == "linux":
        for pid in pids:
            with contextlib.suppress(PermissionError):
                os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))


async def _until_one_is_closed(attacker: Process) -> None:
    """Wait until the exchange has closed a connection of the attack, or for some time; it is judged later."""
    assert attacker.stdout is not None
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(attacker.stdout.readline(), HELD_WITHIN_S)


async def main(scale: float, seconds: float, ways: Sequence[str]) -> int:
    """Play the attacks, print a row for each, and return 1 if a figure misses its bar."""
    sys.stdout.write(head())
    misses = []
    with tempfile.TemporaryDirectory() as folder:
        running = Running(Path(folder))
        await running.start()
        try:
            async with a_target(running, round(MARKETS * scale)) as target:
                siege = await Siege.begin(target)
                for way in ways:
                    plays = []
                    async for outcome in siege.plays(way, scale, seconds):
                        sys.stdout.write(row_of(outcome))
                        sys.stdout.flush()
                        plays.append(outcome)
                    misses += misses_of(plays, is_whole=scale >= 1)
                misses += await siege.misses()
        finally:
            running.stop()
    for missed in misses:
        sys.stdout.write(f"missed: {missed}\n")
    return 1 if misses else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("ways", nargs="*", default=list(CONNECTIONS))
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.scale, given.seconds, given.ways)))
