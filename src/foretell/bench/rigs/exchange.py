"""The measured exchange, in a process of its own."""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

import uvloop

from foretell.app.clock_and_ids import now_ms
from foretell.app.roles import PREFIX_BY_ROLE, Role
from foretell.app.running import set_up_logs
from foretell.bench.rigs.echo import start_echo
from foretell.bench.rigs.trading_alone import trading_alone
from foretell.bench.rigs.world import World, funding_command, make_world, market_commands
from foretell.domain.errors.command import BenchFailed
from foretell.runtime.garbage_collection import settle_memory
from foretell.runtime.threads import let_threads_work
from foretell.settings import Settings
from foretell.store.trading.api_keys import record_key

START_DEADLINE_S: Final = 300.0
STOP_DEADLINE_S: Final = 20.0


class Exchange(NamedTuple):
    """The port of an exchange, its processes, and the prefix of its trading paths.

    At `echo_port` its event loop also serves HTTP without an exchange, 0 where nothing does.
    """

    port: int
    pids: tuple[int, ...]
    path: str = PREFIX_BY_ROLE[Role.TRADING]
    echo_port: int = 0


@contextlib.contextmanager
def running_exchange(
    master_key: bytes, folder: Path, *, is_durable: bool = True, proxies: tuple[str, ...] = ()
) -> Iterator[Exchange]:
    """Give an exchange that runs in a process of its own, until the block ends.

    Without durability it answers without waiting for its disk. Connections of `proxies` have no pace.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(
        target=_serve_in_process,
        args=(master_key, folder, theirs, is_durable, proxies),
        daemon=True,
    )
    process.start()
    theirs.close()
    try:
        port, echo_port = _ports(ours)
        assert process.pid is not None
        yield Exchange(port, (process.pid,), echo_port=echo_port)
    finally:
        with contextlib.suppress(OSError):
            ours.send("stop")
        process.join(STOP_DEADLINE_S)
        if process.is_alive():
            process.kill()


def _ports(child: Connection) -> tuple[int, int]:
    """Return the ports that the child sends; a child that ends closes its end of the pipe."""
    try:
        if child.poll(START_DEADLINE_S):
            ports: tuple[int, int] = child.recv()
            return ports
    except EOFError:
        pass
    raise BenchFailed("the exchange did not start")


def _serve_in_process(
    master_key: bytes,
    folder: Path,
    parent: Connection,
    is_durable: bool,  # noqa: FBT001 - an argument of a process
    proxies: tuple[str, ...],
) -> None:
    set_up_logs(Settings())
    if not is_durable:
        os.fdatasync = os.fstat  # type: ignore[assignment]
    uvloop.run(_serve(make_world(master_key), folder, parent, proxies))


async def _serve(world: World, folder: Path, parent: Connection, proxies: tuple[str, ...]) -> None:
    async with trading_alone(world.deployment, world.master_key, folder, proxies) as alone:
        async with alone.database.writing() as tx:
            for user in world.users:
                await record_key(tx, user.credentials.key_id, user.index, now_ms())
        for command in market_commands(world, alone.engine.clock_ms()):
            await alone.engine.submit(command)
        await alone.engine.submit(funding_command(world, alone.engine.clock_ms()))
        async with await start_echo() as echo:
            settle_memory()
            let_threads_work()
            parent.send((alone.port, echo.sockets[0].getsockname()[1]))
            await asyncio.to_thread(parent.recv)


def seconds_until_ready(folder: Path, master_key: bytes) -> float:
    """Start trading, stop it, and return the time until it answered."""
    world = make_world(master_key)

    async def start() -> float:
        began_s = time.perf_counter()
        async with trading_alone(world.deployment, world.master_key, folder):
            return time.perf_counter() - began_s

    return uvloop.run(start())
