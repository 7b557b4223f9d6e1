"""Engines in processes of their own, and the processes that serve clients by asking them.

An engine listens before it leads, so that its lease can name where; until it has replayed its journal
it hangs up on whoever comes.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from foretell.app.chance import new_uuid, new_word, now_ms
from foretell.app.children import Child, keep
from foretell.app.parts import Ground, chain_view
from foretell.app.snapshots import Snapshots
from foretell.app.sockets import (
    UNIX,
    FindEndpoint,
    Listening,
    connect,
    engine_token,
    listen,
    socket_path,
)
from foretell.domain.errors import ForetellError
from foretell.domain.hexadecimal import Bytes32, word_bytes
from foretell.domain.shards import shard_of
from foretell.domain.storage_errors import JournalFailed
from foretell.journal.file import FileJournal
from foretell.journal.leases import Candidate, ShardPlace, find_endpoint
from foretell.journal.port import Journal
from foretell.journal.postgres import lead
from foretell.journal.shard_map import in_one_database, load_shard_map
from foretell.settings import PREFIX, Settings
from foretell.trading.accounts import Wallets
from foretell.trading.engine import Durable, Engine
from foretell.trading.feed import Feed
from foretell.trading.heartbeats import Heartbeats
from foretell.trading.host import Host
from foretell.trading.loops import Loop, forever
from foretell.trading.projection import Projection
from foretell.trading.questions import Canceled, CancelMatching
from foretell.trading.remote import RemoteShard
from foretell.trading.services import TradingServices, build_services
from foretell.trading.serving import EngineServer
from foretell.trading.shards import Shard, Shards

NAMES_LOOK_S: Final = 1.0
NO_LISTENER: Final = -1
"""What a member is told in the place of a file number when it has no port."""


def shard_place(settings: Settings, shard: int) -> ShardPlace:
    """Return where PostgreSQL keeps a shard's journal."""
    url = settings.database
    shards = (
        in_one_database(url, settings.shards)
        if settings.shard_map is None
        else load_shard_map(settings.shard_map)
    )
    return shards.place(shard)


def engine_finder(settings: Settings, shard: int) -> FindEndpoint:
    """Return what says where the engine of a shard listens now."""

    async def find_leader() -> str | None:
        try:
            return await find_endpoint(shard_place(settings, shard))
        except JournalFailed:
            return None

    async def find_neighbour() -> str | None:
        return f"{UNIX}{socket_path(settings.data, f'engine-{shard}')}"

    return find_neighbour if settings.journal == "file" else find_leader


def remote_shards(ground: Ground) -> list[RemoteShard]:
    """Return every engine as others see it, hearing nothing of what they do."""
    token = engine_token(ground.vault.master)
    return [
        RemoteShard(partial(connect, engine_finder(ground.settings, shard)), token)
        for shard in range(ground.settings.shards)
    ]


@dataclass(frozen=True, slots=True)
class ServedEngine:
    """An engine that leads its shard and answers at its socket."""

    host: Host
    feed: Feed
    listening: Listening
    loops: dict[str, Loop]

    async def close(self) -> None:
        """Answer no more, and make durable what was taken."""
        await self.listening.close()
        await self.host.engine.close()


def kept_engines(ground: Ground, rpc_url: str) -> dict[str, Loop]:
    """Return what keeps the sandbox's engines running, each in a process of its own."""
    settings = ground.settings
    environment = {
        f"{PREFIX}RPC_URL": rpc_url,
        f"{PREFIX}CHAIN_ID": str(settings.chain_id),
        f"{PREFIX}MASTER_KEY": ground.vault.master.hex(),
    }
    return {
        f"engine {shard}": partial(
            keep,
            Child(f"engine {shard}", engine_arguments(settings, shard), environment=environment),
        )
        for shard in range(settings.shards)
    }


def engine_arguments(settings: Settings, shard: int) -> tuple[str, ...]:
    """Return the command that runs an engine as a member of those whom this process keeps."""
    own = ("serve", "engine", "--shard", str(shard), "--member", str(NO_LISTENER))
    return (*own, *same_arguments(settings))


def same_arguments(settings: Settings) -> tuple[str, ...]:
    """Return what the command line may have changed in the settings that others read, too."""
    named = {"data": settings.data, "port": settings.port, "shards": settings.shards}
    return tuple(word for name, value in named.items() for word in (f"--{name}", str(value)))


async def lead_shard(ground: Ground, shard: int) -> ServedEngine:
    """Return the engine of a shard once it leads and has replayed its journal, however long it waits."""
    settings = ground.settings
    server = EngineServer(engine_token(ground.vault.master))
    holder = word_bytes(new_word())
    name = f"engine-{shard}"
    if settings.journal == "postgres":
        name += f"-{holder.hex()[:8]}"
    path = socket_path(settings.data, name)
    listening = await listen(server.connection, path, settings.engine_host)
    journal: Journal
    loops: dict[str, Loop] = {}
    if settings.journal == "postgres":
        candidate = Candidate(holder, listening.endpoint)
        journal = await lead(shard_place(settings, shard), candidate)
    else:
        journal = FileJournal(settings.data / f"journal-{shard}")
    host = _host(ground, shard, journal, loops)
    if isinstance(journal, FileJournal):
        projection, every = host.projection, settings.snapshot_every
        loops["snapshots"] = Snapshots(journal, lambda: projection.sequence, every).run
    await host.start()
    feed = Feed(host.engine, ground.database, ground.deployment.exchanges, settings.confirmations)
    loops |= {**host.loops(), "feed": feed.run}
    server.open(host)
    return ServedEngine(host, feed, listening, loops)


def _host(ground: Ground, shard: int, journal: Journal, loops: dict[str, Loop]) -> Host:
    """Return an engine's host; the first one's cancels the orders of keys that stopped beating."""
    everyone: Sequence[Shard] = remote_shards(ground) if shard == 0 else ()

    async def cancel(question: CancelMatching) -> Canceled:
        return await Shards([host, *everyone[1:]]).cancel(question)

    for number, other in enumerate(everyone[1:], 1):
        assert isinstance(other, RemoteShard)
        loops[f"line to engine {number}"] = other.run
    heartbeats = Heartbeats(
        ground.database, cancel, Wallets(ground.deployment), now_ms=now_ms, new_uuid=new_uuid
    )
    host = Host(Engine(journal, now_ms), Projection(ground.database), heartbeats)
    return host


class _ShardHearer:
    """What an engine does, told to those who serve clients."""

    def __init__(self, services: TradingServices, number: int, count: int) -> None:
        self._services = services
        self._number = number
        self._count = count

    def begin(self) -> None:
        """Forget what was heard of this engine: its whole state is told next."""
        self._services.begin(self._is_theirs)

    def hear(self, durable: Durable) -> None:
        """Take what a command did."""
        self._services.hear(durable)

    def _is_theirs(self, condition_id: Bytes32) -> bool:
        return shard_of(condition_id, self._count) == self._number


class AskingTrading(NamedTuple):
    """The product without an engine: what serves clients, and its lines to the engines."""

    services: TradingServices
    shards: Sequence[RemoteShard]
    loops: dict[str, Loop]


def build_asking(ground: Ground) -> AskingTrading:
    """Return trading that asks engines in other processes."""
    shards = remote_shards(ground)
    services = build_services(
        deployment=ground.deployment,
        database=ground.database,
        shards=Shards(shards),
        key_ring=ground.key_ring,
        chain=chain_view(ground),
        blob_base_url=ground.settings.blob_base_url,
        now_ms=now_ms,
        new_uuid=new_uuid,
    )
    for number, shard in enumerate(shards):
        shard.hearer = _ShardHearer(services, number, len(shards))
    lines = {f"line to engine {number}": shard.run for number, shard in enumerate(shards)}
    names = partial(forever, "names", partial(_learn_names, services))
    return AskingTrading(services, shards, {**services.loops(), **lines, "names": names})


async def _learn_names(services: TradingServices) -> None:
    """Read, for ever, what markets that were told of are called."""
    while True:
        with contextlib.suppress(ForetellError):
            await services.catalogue.load(services.board.market_by_id)
        await asyncio.sleep(NAMES_LOOK_S)
