"""The installed command, in a data folder and on ports of its own."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from foretell.bench.rigs.ports import free_port
from foretell.domain.contracts.deployment import parse_deployment
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.ready import Ready, read_ready

FORETELL = str(Path(sys.executable).with_name("foretell"))
READY_WITHIN_S = 900.0
STOPPED_WITHIN_S = 600.0
ENDED_WITHIN_S = 1_800.0
POLL_S = 0.05
BLOCK_S = "0.2"
"""Seconds between blocks of its chain, as a setting; a user's chain takes a second."""


@dataclass(slots=True)
class Running:
    """`foretell up` over one data folder; it may be killed and started again."""

    folder: Path
    port: int = field(default_factory=free_port)
    chain_port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def output(self) -> str:
        """The output of all starts so far."""
        return (self.folder / "output").read_text()

    def begin(self) -> None:
        """Start the command, and do not wait for it."""
        command = [FORETELL, "up", "--data", str(self.data)]
        ports = ["--port", str(self.port), "--chain-port", str(self.chain_port)]
        with (self.folder / "output").open("ab") as output:
            self.process = subprocess.Popen(
                [*command, *ports],
                cwd=self.folder,
                env={**os.environ, "FORETELL_CHAIN_BLOCK_S": BLOCK_S},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    async def start(self) -> Ready:
        """Start the command, and return its `ready.json` when everything answers."""
        self.begin()
        return await self.ready()

    async def ready(self) -> Ready:
        await self.until_there_is("ready.json")
        return read_ready(self.data)

    async def until_there_is(self, name: str) -> None:
        """Wait for a file of the data folder; fail with the output of a command that ends before."""
        async with asyncio.timeout(READY_WITHIN_S):
            while not (self.data / name).exists():
                assert self.process is not None
                assert self.process.poll() is None, self.output
                await asyncio.sleep(POLL_S)

    def kill(self) -> None:
        """Kill the process, as a loss of power would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(STOPPED_WITHIN_S)
        (self.data / "ready.json").unlink(missing_ok=True)

    async def restart(self) -> Ready:
        self.kill()
        return await self.start()

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ask it to stop, as Ctrl-C does, and return its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(STOPPED_WITHIN_S)

    def processes(self) -> list[str]:
        """Return the command lines of all processes that work on the data folder."""
        return [line for line in command_lines() if str(self.data) in line]

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[DemoSession]:
        """Give a session with the public addresses and keys of the sandbox."""
        deployment = parse_deployment((self.data / "deployment.json").read_bytes())
        console = Console(file=(self.folder / "demo").open("a"), width=200)
        with console.file:
            async with DemoSession.open(
                read_ready(self.data), deployment, console=console
            ) as session:
                yield session

    def demo_output(self) -> str:
        """Return what the demo has printed in the sessions of this installation."""
        return (self.folder / "demo").read_text()


def command_lines() -> Iterator[str]:
    """Yield the command lines of all processes."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                yield (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()


def run_foretell(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    return subprocess.run(
        [FORETELL, *arguments],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=ENDED_WITHIN_S,
        check=False,
    )
