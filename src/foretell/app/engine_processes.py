"""Engines in processes of their own: their command lines, their leadership, and connections to them.

An engine listens before it leads, so that its lease can name its address. Until it has replayed its
journal it closes every connection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from foretell.app.builders import Resources
from foretell.app.clock_and_ids import new_word, now_ms
from foretell.app.engine_sockets import (
    UNIX,
    FindEndpoint,
    Listening,
    connect,
    engine_token,
    listen,
    socket_path,
)
from foretell.app.journals import engine_name, journal_folder, journal_place
from foretell.app.origin import check_journal
from foretell.app.snapshot_schedule import Schedule, Snapshots
from foretell.domain.errors.storage import JournalFailed
from foretell.domain.treasury.folds import JournalKind
from foretell.domain.values.hexadecimal import word_bytes
from foretell.domain.values.sharding import TREASURY, ShardNumber, ShardPlace, shard_numbers
from foretell.engine.allocations.client import AllocationClient
from foretell.engine.allocations.collateral_feed import CollateralFeed
from foretell.engine.allocations.coordinator import AllocationCoordinator
from foretell.engine.host import EngineHost
from foretell.engine.protocol.client import RemoteShard
from foretell.engine.server import EngineServer
from foretell.engine.treasury_host import TreasuryHost
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.treasury_engine import TreasuryEngine
from foretell.journal.files.journal import FileJournal
from foretell.journal.port import Journal
from foretell.journal.postgres.journal import lead
from foretell.journal.postgres.leases import Candidate, find_endpoint
from foretell.runtime.child_processes import Child, ChildProcess, run_supervised
from foretell.runtime.loops import Loop
from foretell.settings import PREFIX, Settings


def engine_finder(settings: Settings, shard: ShardNumber) -> FindEndpoint:
    """Return a function that finds the current address of an engine, or of the treasury."""

    async def find_leader() -> str | None:
        try:
            return await find_endpoint(journal_place(settings, shard))
        except JournalFailed:
            return None

    async def find_neighbour() -> str | None:
        return f"{UNIX}{socket_path(settings.data, engine_name(shard))}"

    return find_neighbour if settings.journal == "file" else find_leader


def remote_shard(resources: Resources, shard: ShardNumber) -> RemoteShard:
    """Return the connection to an engine, or to the treasury, in another process."""
    find = engine_finder(resources.settings, shard)
    token = engine_token(resources.keys.master)
    return RemoteShard(partial(connect, find), token, name=engine_name(shard))


def remote_shards(resources: Resources) -> list[RemoteShard]:
    """Return the connections to all engines, without a subscription to what they publish."""
    return [remote_shard(resources, shard) for shard in shard_numbers(resources.settings.shards)]


def connection_loops(
    shards: Sequence[RemoteShard], treasury: RemoteShard | None = None
) -> dict[str, Loop]:
    """Return the loops that keep connections to engines, by name."""
    loops: dict[str, Loop] = {
        f"connection to engine {number}": shard.run for number, shard in enumerate(shards)
    }
    if treasury is not None:
        loops["connection to the treasury"] = treasury.run
    return loops


def supervised_engines(resources: Resources, rpc_url: str) -> dict[str, Loop]:
    """Return the loops that keep the sandbox's engines running, each in a process of its own."""
    settings = resources.settings
    environment = {
        f"{PREFIX}RPC_URL": rpc_url,
        f"{PREFIX}CHAIN_ID": str(settings.chain_id),
        f"{PREFIX}MASTER_KEY": resources.keys.master.hex(),
    }
    return supervision_loops(engine_children(settings, environment))


def supervision_loops(children: Sequence[Child]) -> dict[str, Loop]:
    """Return the loops that keep child processes running, by the names of those."""
    return {
        child.name: partial(run_supervised, child.name, ChildProcess(child)) for child in children
    }


def engine_children(settings: Settings, environment: Mapping[str, str]) -> list[Child]:
    """Return the processes of the engines, and of the treasury that several engines share."""
    member = ("--member", *same_arguments(settings))
    children = [
        Child(
            f"engine {shard}",
            ("serve", "engine", "--shard", str(shard), *member),
            environment=environment,
        )
        for shard in range(settings.shards)
    ]
    if settings.shards > 1:
        children.append(Child("treasury", ("serve", "treasury", *member), environment=environment))
    return children


def same_arguments(settings: Settings) -> tuple[str, ...]:
    """Return the options that give a child those settings that the command line may have changed."""
    named = {"data": settings.data, "port": settings.port, "shards": settings.shards}
    return tuple(word for name, value in named.items() for word in (f"--{name}", str(value)))


@dataclass(frozen=True, slots=True)
class RunningEngine:
    """An engine or a treasury that leads and answers at its socket."""

    host: EngineHost | TreasuryHost
    listening: Listening
    loops: dict[str, Loop]

    async def close(self) -> None:
        """Stop accepting connections, and make durable what was accepted."""
        await self.listening.close()
        await self.host.close()


class Leadership(NamedTuple):
    """The socket of a process that leads, and the journal that it alone may write."""

    server: EngineServer
    listening: Listening
    journal: Journal


async def take_leadership(resources: Resources, shard: ShardNumber) -> Leadership:
    """Listen, and return once this process may write the journal, however long that takes."""
    settings = resources.settings
    server = EngineServer(engine_token(resources.keys.master))
    name, holder = engine_name(shard), word_bytes(new_word())
    is_leased = settings.journal == "postgres"
    path = socket_path(settings.data, f"{name}-{holder.hex()[:8]}" if is_leased else name)
    listening = await listen(server.connection, path, settings.engine_host)
    journal: Journal
    if is_leased:
        journal = await lead(journal_place(settings, shard), Candidate(holder, listening.endpoint))
    else:
        journal = FileJournal(journal_folder(settings, shard))
    reader = "treasury" if shard == TREASURY else ShardPlace(shard, settings.shards).name
    try:
        await check_journal(resources.database, settings.data, reader, journal)
    except BaseException:
        await journal.close()
        raise
    return Leadership(server, listening, journal)


async def lead_shard(resources: Resources, shard: ShardNumber) -> RunningEngine:
    """Return the engine of a shard once it leads and has replayed its journal.

    The first engine also cancels orders at the others, for keys without heartbeats.
    """
    settings = resources.settings
    server, listening, journal = await take_leadership(resources, shard)
    place = ShardPlace(shard, settings.shards)
    others = remote_shards(resources)[1:] if shard == 0 else []
    loops: dict[str, Loop] = {
        f"connection to engine {number}": each.run for number, each in enumerate(others, 1)
    }
    allocations = None
    if place.has_treasury:
        treasury = remote_shard(resources, TREASURY)
        allocations = AllocationClient(place.name, treasury)
        loops |= connection_loops([], treasury)
    engine = Engine(journal, now_ms)
    host = resources.engine_parts().host(engine, others, place, allocations)
    projection, schedule = host.projection, Schedule.of(settings)
    snapshots = Snapshots(journal, lambda: projection.sequence, schedule)
    await host.start()
    exchanges = resources.deployment.exchanges
    feed = ChainFeed(
        engine,
        resources.database,
        exchanges,
        settings.confirmations,
        place=place,
        sports_delay_s=settings.sports_delay_s,
        lag=resources.chain_lag,
        lower_head=resources.lower_head,
    )
    server.open(host, engine)
    loops |= {"snapshots": snapshots.run, **host.loops(), "feed": feed.run}
    return RunningEngine(host, listening, loops)


async def lead_treasury(resources: Resources) -> RunningEngine:
    """Return the treasury once it leads and has replayed its journal."""
    server, listening, journal = await take_leadership(resources, TREASURY)
    engine = TreasuryEngine(journal, now_ms)
    count, schedule = resources.settings.shards, Schedule.of(resources.settings)
    snapshots = Snapshots(journal, lambda: engine.synced_sequence, schedule, JournalKind.TREASURY)
    shards = remote_shards(resources)
    coordinator = AllocationCoordinator(
        engine, {ShardPlace(number, count).name: shard for number, shard in enumerate(shards)}
    )
    exchanges, lower_head = resources.deployment.exchanges, resources.lower_head
    feed = CollateralFeed(engine, coordinator, resources.database, exchanges, lower_head)
    host = TreasuryHost(engine, coordinator, feed)
    await host.start()
    server.open(host)
    loops = {**connection_loops(shards), **host.loops(), "snapshots": snapshots.run}
    return RunningEngine(host, listening, loops)
