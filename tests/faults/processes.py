"""Processes of an installation that a test starts, kills and stops, and that end with the test."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SERVING: Final = Path(__file__).with_name("serving.py")
SERVES_WITHIN_S: Final = 300.0
ENDS_WITHIN_S: Final = 120.0


@dataclass
class Member:
    """One process, from its start."""

    name: str
    pid: "asyncio.Future[int]" = field(default_factory=asyncio.Future)
    code: "asyncio.Future[int]" = field(default_factory=asyncio.Future)
    served: asyncio.Event = field(default_factory=asyncio.Event)

    async def serves(self) -> None:
        """Return when it serves; one that ends before fails the test."""
        self.code.add_done_callback(lambda _: self.served.set())
        async with asyncio.timeout(SERVES_WITHIN_S):
            await self.served.wait()
        assert not self.code.done(), f"{self.name} ended with {self.code.result()}"

    async def signal(self, number: signal.Signals) -> None:
        os.kill(await self.pid, number)

    async def kill(self) -> None:
        """Kill the process, and return when it is gone."""
        await self.signal(signal.SIGKILL)
        assert await self.ended() == -signal.SIGKILL

    async def ended(self) -> int:
        """Wait for its end, and return its code."""
        async with asyncio.timeout(ENDS_WITHIN_S):
            return await asyncio.shield(self.code)

    def on_report(self, word: str, value: str) -> None:
        """Note what the maker reports of the process."""
        match word:
            case "began":
                self.pid.set_result(int(value))
            case "serves":
                self.served.set()
            case _:
                assert word == "ended"
                self.code.set_result(int(value))


class Processes:
    """The process that makes others, and all that it made; see serving.py."""

    def __init__(self, maker: asyncio.subprocess.Process) -> None:
        self._maker = maker
        self._members: dict[str, Member] = {}
        self._count = 0
        self._reading = asyncio.create_task(self._read_reports())

    async def start(
        self,
        folder: Path,
        roles: Sequence[str],
        environment: Mapping[str, str],
        fault: str = "none",
    ) -> Member:
        """Start a process with these roles, and return at once."""
        self._count += 1
        name = f"{roles[0]}-{self._count}"
        member = self._members[name] = Member(name)
        job = {"name": name, "folder": str(folder), "roles": list(roles), "fault": fault}
        assert self._maker.stdin is not None
        line = json.dumps({**job, "environment": dict(environment)})
        self._maker.stdin.write(line.encode() + b"\n")
        await self._maker.stdin.drain()
        return member

    async def end(self) -> None:
        """Kill all processes that still run."""
        for member in self._members.values():
            if not member.code.done():
                with contextlib.suppress(ProcessLookupError):
                    await member.signal(signal.SIGKILL)
                await member.ended()

    async def close(self) -> None:
        """End everything."""
        await self.end()
        assert self._maker.stdin is not None
        self._maker.stdin.close()
        await self._maker.wait()
        await self._reading

    async def _read_reports(self) -> None:
        assert self._maker.stdout is not None
        async for line in self._maker.stdout:
            name, word, *values = line.decode().split()
            self._members[name].on_report(word, "".join(values))


@contextlib.asynccontextmanager
async def processes() -> AsyncIterator[Processes]:
    """Yield the maker of processes, and end all of them with the block."""
    maker = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVING), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    made = Processes(maker)
    try:
        yield made
    finally:
        await made.close()
