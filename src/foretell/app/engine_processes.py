"""Engines in processes of their own, and the processes that serve clients by asking them.

An engine listens before it leads, so that its lease can name where; until it has replayed its journal
it hangs up on whoever comes.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from foretell.app.builders import Resources, chain_view
from foretell.app.clock_and_ids import new_uuid, new_word, now_ms
from foretell.app.engine_sockets import (
    UNIX,
    FindEndpoint,
    Listening,
    connect,
    engine_token,
    listen,
    socket_path,
)
from foretell.app.snapshot_schedule import Schedule, Snapshots
from foretell.domain.contracts.wallets import Wallets
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.storage import JournalFailed
from foretell.domain.treasury.folds import JournalKind
from foretell.domain.values.hexadecimal import Bytes32, word_bytes
from foretell.domain.values.sharding import (
    TREASURY,
    ShardNumber,
    ShardPlace,
    shard_numbers,
    shard_of,
)
from foretell.engine.allocations.client import AllocationClient
from foretell.engine.allocations.collateral_feed import CollateralFeed
from foretell.engine.allocations.coordinator import AllocationCoordinator
from foretell.engine.host import EngineHost
from foretell.engine.protocol.client import RemoteShard
from foretell.engine.protocol.requests import (
    CancelMatchingRequest,
    CancelOrdersReply,
    CommittedCommand,
)
from foretell.engine.protocol.router import Shards
from foretell.engine.server import EngineServer
from foretell.engine.treasury_host import TreasuryHost
from foretell.engine.writer.chain_feed import ChainFeed
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.heartbeats import Heartbeats
from foretell.engine.writer.projection import Projection
from foretell.engine.writer.treasury_engine import TreasuryEngine
from foretell.journal.files.journal import FileJournal
from foretell.journal.port import Journal
from foretell.journal.postgres import leases
from foretell.journal.postgres.journal import lead
from foretell.journal.shard_map import in_one_database, load_shard_map
from foretell.runtime.child_processes import Child, supervise
from foretell.runtime.loops import Loop, forever
from foretell.settings import PREFIX, Settings
from foretell.trading.accounts.signers import Recover
from foretell.trading.context import TradingContext, build_context

NAMES_LOOK_S: Final = 1.0
NO_LISTENER: Final = -1
"""What a member is told in the place of a file number when it has no port."""


def journal_place(settings: Settings, shard: ShardNumber) -> leases.JournalPlace:
    """Return where PostgreSQL keeps the journal of a shard, or of the treasury."""
    url = settings.database
    if shard == TREASURY:
        return leases.JournalPlace(url, shard, settings.shards)
    shards = (
        in_one_database(url, settings.shards)
        if settings.shard_map is None
        else load_shard_map(settings.shard_map)
    )
    return shards.place(shard)


def engine_finder(settings: Settings, shard: ShardNumber) -> FindEndpoint:
    """Return what says where the engine of a shard, or the treasury, listens now."""

    async def find_leader() -> str | None:
        try:
            return await leases.find_endpoint(journal_place(settings, shard))
        except JournalFailed:
            return None

    async def find_neighbour() -> str | None:
        return f"{UNIX}{socket_path(settings.data, _name_of(shard))}"

    return find_neighbour if settings.journal == "file" else find_leader


def _name_of(shard: ShardNumber) -> str:
    return "treasury" if shard == TREASURY else f"engine-{shard}"


def remote_shard(ground: Resources, shard: ShardNumber) -> RemoteShard:
    """Return an engine, or the treasury, as other processes see it."""
    find = engine_finder(ground.settings, shard)
    token = engine_token(ground.vault.master)
    return RemoteShard(partial(connect, find), token, name=_name_of(shard))


def remote_shards(ground: Resources) -> list[RemoteShard]:
    """Return every engine as others see it, hearing nothing of what they do."""
    return [remote_shard(ground, shard) for shard in shard_numbers(ground.settings.shards)]


def kept_engines(ground: Resources, rpc_url: str) -> dict[str, Loop]:
    """Return what keeps the sandbox's engines running, each in a process of its own."""
    settings = ground.settings
    environment = {
        f"{PREFIX}RPC_URL": rpc_url,
        f"{PREFIX}CHAIN_ID": str(settings.chain_id),
        f"{PREFIX}MASTER_KEY": ground.vault.master.hex(),
    }
    return {
        child.name: partial(supervise, child) for child in engine_children(settings, environment)
    }


def engine_children(settings: Settings, environment: Mapping[str, str]) -> list[Child]:
    """Return the processes of the engines, and of the treasury that several of them share."""
    member = ("--member", str(NO_LISTENER), *same_arguments(settings))
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
    """Return what the command line may have changed in the settings that others read, too."""
    named = {"data": settings.data, "port": settings.port, "shards": settings.shards}
    return tuple(word for name, value in named.items() for word in (f"--{name}", str(value)))


@dataclass(frozen=True, slots=True)
class RunningEngine:
    """An engine or a treasury that leads and answers at its socket."""

    engine: Engine | TreasuryEngine
    listening: Listening
    loops: dict[str, Loop]

    async def close(self) -> None:
        """Answer no more, and make durable what was taken."""
        await self.listening.close()
        await self.engine.close()


class _Leadership(NamedTuple):
    """What a leader begins with."""

    server: EngineServer
    listening: Listening
    journal: Journal


async def _lead(ground: Resources, shard: ShardNumber) -> _Leadership:
    """Listen, and return once the journal is ours, however long that takes."""
    settings = ground.settings
    server = EngineServer(engine_token(ground.vault.master))
    name, holder = _name_of(shard), word_bytes(new_word())
    is_leased = settings.journal == "postgres"
    path = socket_path(settings.data, f"{name}-{holder.hex()[:8]}" if is_leased else name)
    listening = await listen(server.connection, path, settings.engine_host)
    journal: Journal
    if is_leased:
        candidate = leases.Candidate(holder, listening.endpoint)
        journal = await lead(journal_place(settings, shard), candidate)
    else:
        kept = "treasury" if shard == TREASURY else str(shard)
        journal = FileJournal(settings.data / f"journal-{kept}")
    return _Leadership(server, listening, journal)


async def lead_shard(ground: Resources, shard: ShardNumber) -> RunningEngine:
    """Return the engine of a shard once it leads and has replayed its journal."""
    settings = ground.settings
    server, listening, journal = await _lead(ground, shard)
    place = ShardPlace(shard, settings.shards)
    engine, loops = Engine(journal, now_ms), dict[str, Loop]()
    host = _host(ground, engine, place, loops)
    projection, schedule = host.projection, Schedule.of(settings)
    loops["snapshots"] = Snapshots(journal, lambda: projection.sequence, schedule).run
    await host.start()
    exchanges = ground.deployment.exchanges
    feed = ChainFeed(engine, ground.database, exchanges, settings.confirmations, place=place)
    server.open(host, engine)
    return RunningEngine(engine, listening, {**loops, **host.loops(), "feed": feed.run})


async def lead_treasury(ground: Resources) -> RunningEngine:
    """Return the treasury once it leads and has replayed its journal."""
    server, listening, journal = await _lead(ground, TREASURY)
    engine = TreasuryEngine(journal, now_ms)
    count, schedule = ground.settings.shards, Schedule.of(ground.settings)
    snapshots = Snapshots(journal, lambda: engine.synced_sequence, schedule, JournalKind.TREASURY)
    shards = remote_shards(ground)
    coordinator = AllocationCoordinator(
        engine, {ShardPlace(number, count).name: shard for number, shard in enumerate(shards)}
    )
    feed = CollateralFeed(engine, coordinator, ground.database, ground.deployment.exchanges)
    host = TreasuryHost(engine, coordinator, feed)
    await host.start()
    server.open(host)
    lines = {f"line to engine {number}": shard.run for number, shard in enumerate(shards)}
    return RunningEngine(engine, listening, {**lines, **host.loops(), "snapshots": snapshots.run})


def _host(
    ground: Resources, engine: Engine, place: ShardPlace, loops: dict[str, Loop]
) -> EngineHost:
    """Return an engine's host; the first one's cancels the orders of keys that stopped beating."""
    others: Sequence[RemoteShard] = remote_shards(ground)[1:] if place.number == 0 else ()

    async def cancel(request: CancelMatchingRequest) -> CancelOrdersReply:
        return await Shards([host, *others]).cancel(request)

    allocation_client = None
    if place.has_treasury:
        treasury = remote_shard(ground, TREASURY)
        allocation_client = AllocationClient(place.name, treasury)
        loops["line to the treasury"] = treasury.run
    for number, other in enumerate(others, 1):
        loops[f"line to engine {number}"] = other.run
    heartbeats = Heartbeats(
        ground.database, cancel, Wallets(ground.deployment), now_ms=now_ms, new_uuid=new_uuid
    )
    host = EngineHost(
        engine, Projection(ground.database, place.name), heartbeats, allocation_client
    )
    return host


class _ShardSubscriber:
    """What an engine does, told to those who serve clients."""

    def __init__(self, context: TradingContext, number: int, count: int) -> None:
        self._context = context
        self._number = number
        self._count = count

    def begin(self) -> None:
        """Forget what was heard of this engine: its whole state is told next."""
        self._context.begin(self._is_theirs)

    def on_committed(self, committed: CommittedCommand) -> None:
        """Take what a command did."""
        self._context.on_committed(committed)

    def _is_theirs(self, condition_id: Bytes32) -> bool:
        return shard_of(condition_id, self._count) == self._number


class AskingTrading(NamedTuple):
    """The product without an engine: what serves clients, and its lines to the engines."""

    context: TradingContext
    shards: Sequence[RemoteShard]
    loops: dict[str, Loop]


def build_asking(ground: Resources, recover: Recover) -> AskingTrading:
    """Return trading that asks engines in other processes."""
    shards = remote_shards(ground)
    treasury = remote_shard(ground, TREASURY) if len(shards) > 1 else None
    context = build_context(
        deployment=ground.deployment,
        database=ground.database,
        shards=Shards(shards, treasury),
        key_ring=ground.key_ring,
        chain=chain_view(ground),
        recover=recover,
        blob_base_url=ground.settings.blob_base_url,
        now_ms=now_ms,
        new_uuid=new_uuid,
    )
    for number, shard in enumerate(shards):
        shard.subscriber = _ShardSubscriber(context, number, len(shards))
    lines = {f"line to engine {number}": shard.run for number, shard in enumerate(shards)}
    if treasury is not None:
        lines["line to the treasury"] = treasury.run
    names = partial(forever, "names", partial(_learn_names, context))
    return AskingTrading(context, shards, {**context.loops(), **lines, "names": names})


async def _learn_names(context: TradingContext) -> None:
    """Read, for ever, what markets that were told of are called."""
    while True:
        with contextlib.suppress(ForetellError):
            await context.market_names.load(context.books.market_by_id)
        await asyncio.sleep(NAMES_LOOK_S)
