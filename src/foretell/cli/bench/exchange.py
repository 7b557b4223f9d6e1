"""The exchange that is measured, in a process of its own."""

import asyncio
import contextlib
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import uvloop

from foretell.app.alone import trading_alone
from foretell.app.chance import now_ms
from foretell.cli.bench.world import World, funding_command, make_world, market_commands
from foretell.cli.running import set_up_logs
from foretell.domain.command_errors import BenchFailed
from foretell.settings import Settings
from foretell.store.api_keys import record_key

START_DEADLINE_S: Final = 60.0
STOP_DEADLINE_S: Final = 20.0


@contextlib.contextmanager
def running_exchange(master_key: bytes, folder: Path) -> Iterator[int]:
    """Give the port of an exchange that runs in a process of its own, until the block ends."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve_forever, args=(master_key, folder, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        yield _port(ours)
    finally:
        with contextlib.suppress(OSError):
            ours.send("stop")
        process.join(STOP_DEADLINE_S)
        if process.is_alive():
            process.kill()


def _port(child: Connection) -> int:
    """Return the port that the child tells of; one that ends instead closes its end of the pipe."""
    try:
        if child.poll(START_DEADLINE_S):
            port: int = child.recv()
            return port
    except EOFError:
        pass
    raise BenchFailed("the exchange did not start")


def _serve_forever(master_key: bytes, folder: Path, parent: Connection) -> None:
    set_up_logs(Settings())
    uvloop.run(_serve(make_world(master_key), folder, parent))


async def _serve(world: World, folder: Path, parent: Connection) -> None:
    async with trading_alone(world.deployment, world.master_key, folder) as alone:
        async with alone.database.writing() as tx:
            for user in world.users:
                await record_key(tx, user.credentials.key_id, user.index, now_ms())
        for command in market_commands(world, alone.engine.clock_ms()):
            await alone.engine.submit(command)
        await alone.engine.submit(funding_command(world, alone.engine.clock_ms()))
        parent.send(alone.port)
        await asyncio.to_thread(parent.recv)
