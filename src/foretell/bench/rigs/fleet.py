"""The measured fleet: `foretell serve trading --workers N --shards M`, as an operator runs it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import uvloop

from foretell.app.clock_and_ids import now_ms
from foretell.bench.rigs.exchange import Exchange
from foretell.bench.rigs.fleet_tables import fill_tables, own_database, server_pids
from foretell.bench.rigs.load import make_requests, send_all
from foretell.bench.rigs.ports import free_port
from foretell.bench.rigs.quiet_node import quiet_node
from foretell.bench.rigs.world import World
from foretell.chain.deploy import store_deployment
from foretell.domain.errors.command import BenchFailed
from foretell.domain.values.sharding import shard_of
from foretell.settings import PREFIX

START_DEADLINE_S: Final = 300.0
STOP_DEADLINE_S: Final = 30.0
POLL_S: Final = 0.5
CONNECTIONS: Final = 16
PATH: Final = ""
"""A process with one API serves it without a prefix."""
FIRST_SALT: Final = 10**9
"""The first salt of orders that test whether the fleet is ready; those of rounds begin with 0.

An accepted order that is sent again gets its first answer.
"""


class Size(NamedTuple):
    """The numbers of processes that answer clients, and of engines."""

    workers: int
    shards: int


@contextlib.contextmanager
def running_fleet(
    world: World,
    folder: Path,
    url: str,
    size: Size,
    start_deadline_s: float = START_DEADLINE_S,
) -> Iterator[Exchange]:
    """Give a fleet that accepts orders in every market, until the block ends.

    Its journals are files in the folder, its tables in a new database on a server.
    """
    with own_database(url) as own_url, quiet_node() as node_url:
        fill_tables(own_url, world)
        store_deployment(folder / "deployment.json", world.deployment)
        settings = {
            "DATA": str(folder),
            "PORT": str(free_port()),
            "CHAIN_ID": str(world.deployment.chain_id),
            "RPC_URL": node_url,
            "DATABASE_URL": own_url,
            "MASTER_KEY": world.master_key.hex(),
            "RATE_LIMITS": "off",
        }
        with _serving(settings, size) as process:
            pids = (process.pid, *server_pids(own_url))
            exchange = Exchange(int(settings["PORT"]), pids, PATH)
            _await_orders(make_probes(world, size.shards), exchange.port, process, start_deadline_s)
            yield exchange


@contextlib.contextmanager
def _serving(settings: Mapping[str, str], size: Size) -> Iterator[subprocess.Popen[bytes]]:
    """Give a process that inherits none of our own settings."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    named = {PREFIX + name: value for name, value in settings.items()}
    words = ("serve", "trading", "--workers", str(size.workers), "--shards", str(size.shards))
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "foretell", *words],
        cwd=settings["DATA"],
        env={**others, **named},
        stdout=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        end_process(process)


def end_process(process: "subprocess.Popen[bytes]", deadline_s: float = STOP_DEADLINE_S) -> None:
    """Stop a process and wait for its end; kill one that does not stop by the deadline."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(deadline_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def make_probes(world: World, shards: int) -> list[bytes]:
    """Return orders of every user in one market of every engine."""
    market_by_shard = {shard_of(each, shards): at for at, each in enumerate(world.conditions)}
    return [
        request
        for market in market_by_shard.values()
        for request in make_requests(
            world, PATH, len(world.users), FIRST_SALT + market * len(world.users), now_ms() // 1000
        )
    ]


def _await_orders(
    probes: list[bytes], port: int, process: subprocess.Popen[bytes], deadline_s: float
) -> None:
    """Return when every engine accepts an order of every user."""
    give_up_at_s = time.monotonic() + deadline_s
    while True:
        try:
            uvloop.run(send_all(port, probes, CONNECTIONS))
        except (BenchFailed, OSError) as failure:
            if time.monotonic() > give_up_at_s or process.poll() is not None:
                raise BenchFailed(f"the fleet takes no orders: {failure}") from failure
            time.sleep(POLL_S)
        else:
            return
