"""Announcements of other processes, by PostgreSQL's LISTEN."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs
from tests.rigs.postgres import PostgresServer

from foretell.domain.errors.storage import StoreUnavailable
from foretell.store.postgres_notify import Listener
from foretell.store.topics import Topics

pytestmark = pytest.mark.anyio

SOON_S = 60.0
RECONNECT_S = 0.05


@pytest.fixture
def topics() -> Topics:
    return Topics()


@pytest.fixture
async def listener(postgres: PostgresServer, topics: Topics) -> AsyncIterator[Listener]:
    url = sa.make_url(postgres.database_url)
    listener = Listener(url, topics, reconnect_s=RECONNECT_S)
    yield listener
    await listener.close()


@pytest.fixture
async def admin(postgres: PostgresServer) -> AsyncIterator[asyncpg.Connection]:
    """A connection to the server that outlives the connections to the database."""
    url = sa.make_url(postgres.database_url).set(drivername="postgresql", database="postgres")
    connection = await asyncpg.connect(url.render_as_string(hide_password=False))
    yield connection
    await connection.close()


def database_name(postgres: PostgresServer) -> str:
    name = sa.make_url(postgres.database_url).database
    assert name is not None
    return name


async def notify(postgres: PostgresServer, topic: str) -> None:
    url = sa.make_url(postgres.database_url).set(drivername="postgresql")
    connection = await asyncpg.connect(url.render_as_string(hide_password=False))
    await connection.execute(f"NOTIFY {topic}")
    await connection.close()


@contextlib.asynccontextmanager
async def closed_to_clients(
    admin: asyncpg.Connection, postgres: PostgresServer
) -> AsyncIterator[None]:
    """Close all connections to the database, and refuse new ones until the block ends."""
    change = f"ALTER DATABASE {database_name(postgres)} ALLOW_CONNECTIONS"
    await admin.execute(f"{change} false")
    try:
        await close_all_connections(admin, postgres)
        yield
    finally:
        await admin.execute(f"{change} true")


async def close_all_connections(admin: asyncpg.Connection, postgres: PostgresServer) -> None:
    ended = await admin.fetch(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1",
        database_name(postgres),
    )
    assert ended


async def test_an_announcement_wakes_its_watch(
    postgres: PostgresServer, listener: Listener, topics: Topics
) -> None:
    fills, keys = topics.watch(["fills"]), topics.watch(["keys"])
    await listener.listen(["fills", "keys"])
    await notify(postgres, "fills")
    assert await fills.wait(SOON_S)
    assert not await keys.wait(0)


async def test_a_topic_listened_to_later_or_twice_is_received(
    postgres: PostgresServer, listener: Listener, topics: Topics
) -> None:
    keys = topics.watch(["keys"])
    await listener.listen(["fills"])
    await listener.listen(["fills", "keys"])
    await listener.listen(["keys"])
    await notify(postgres, "keys")
    assert await keys.wait(SOON_S)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[asyncpg.Connection]:
    """The connections that are opened from now on."""
    opened: list[asyncpg.Connection] = []
    connect = asyncpg.connect

    async def connect_and_keep(*arguments: Any, **named: Any) -> asyncpg.Connection:
        opened.append(await connect(*arguments, **named))
        return opened[-1]

    monkeypatch.setattr(asyncpg, "connect", connect_and_keep)
    return opened


async def test_concurrent_calls_of_listen_share_one_connection(
    listener: Listener, opened: list[asyncpg.Connection]
) -> None:
    """The server's list of connections has others too, which end or which it opens itself."""
    await asyncio.gather(*[listener.listen([topic]) for topic in ("fills", "keys", "blocks")])
    assert len(opened) == 1


async def test_a_lost_connection_is_opened_again_and_wakes_every_watch(
    admin: asyncpg.Connection, postgres: PostgresServer, listener: Listener, topics: Topics
) -> None:
    """Announcements in between were missed, so every owner must check its rows again."""
    watch = topics.watch(["fills"])
    await listener.listen(["fills"])
    await close_all_connections(admin, postgres)
    assert await watch.wait(SOON_S), "woken because something may have been missed"
    await notify(postgres, "fills")
    assert await watch.wait(SOON_S), "and subscribed again"


async def test_a_server_that_stays_away_is_tried_again_and_no_topic_is_lost(
    admin: asyncpg.Connection, postgres: PostgresServer, listener: Listener, topics: Topics
) -> None:
    watch = topics.watch(["fills"])
    await listener.listen(["fills"])
    async with closed_to_clients(admin, postgres):
        assert not await watch.wait(10 * RECONNECT_S)
    assert await watch.wait(SOON_S)
    await notify(postgres, "fills")
    assert await watch.wait(SOON_S)


async def test_an_outage_is_logged_when_it_begins_and_when_it_ends(
    admin: asyncpg.Connection, postgres: PostgresServer, listener: Listener, topics: Topics
) -> None:
    watch = topics.watch(["fills"])
    await listener.listen(["fills"])
    with capture_logs() as logs:
        async with closed_to_clients(admin, postgres), asyncio.timeout(SOON_S):
            while not logs:  # noqa: ASYNC110 - a listener that cannot connect wakes no watch
                await asyncio.sleep(RECONNECT_S)
        assert await watch.wait(SOON_S)
    assert [(each["event"], each["log_level"]) for each in logs] == [
        ("step failed and is repeated", "warning"),
        ("step works again", "warning"),
    ]
    assert {each["loop"] for each in logs} == {"database announcements"}


async def test_a_topic_listened_to_while_the_server_was_away_is_received_once_it_is_back(
    admin: asyncpg.Connection, postgres: PostgresServer, listener: Listener, topics: Topics
) -> None:
    fills, keys = topics.watch(["fills"]), topics.watch(["keys"])
    await listener.listen(["fills"])
    async with closed_to_clients(admin, postgres):
        with pytest.raises(StoreUnavailable):
            await listener.listen(["keys"])
    await listener.listen(["keys"])
    assert await fills.wait(SOON_S)
    await notify(postgres, "keys")
    assert await keys.wait(SOON_S)
    await keys.wait(0)
    await notify(postgres, "fills")
    assert await fills.wait(SOON_S)


async def test_a_call_that_finds_the_connection_closed_opens_another(
    postgres: PostgresServer,
    listener: Listener,
    topics: Topics,
    opened: list[asyncpg.Connection],
) -> None:
    """The driver announces a lost connection one turn of the event loop after it is closed."""
    fills, keys = topics.watch(["fills"]), topics.watch(["keys"])
    await listener.listen(["fills"])
    opened[0].terminate()
    await listener.listen(["keys"])
    assert await fills.wait(SOON_S), "announcements may have been missed"
    await keys.wait(0)
    for topic, watch in (("keys", keys), ("fills", fills)):
        await notify(postgres, topic)
        assert await watch.wait(SOON_S)


class CuttingProxy:
    """Forwards between client and server, and breaks the connection at the client's LISTEN."""

    def __init__(self, url: sa.URL) -> None:
        host, port = str(url.query.get("host", url.host)), url.port or 5432
        self._host, self._port = host, port
        self._is_socket = host.startswith("/")
        self.cuts_left = 0
        self.port = 0
        self.is_quiet = asyncio.Event()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._is_socket:
            return await asyncio.open_unix_connection(f"{self._host}/.s.PGSQL.{self._port}")
        return await asyncio.open_connection(self._host, self._port)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await self.connect()
        ends = [writer, server_writer]
        await asyncio.gather(
            self.pass_on(reader, server_writer, b"LISTEN", ends),
            self.pass_on(server_reader, writer, b"never sent by a server", ends),
        )
        self.is_quiet.set()

    async def pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        cut_at: bytes,
        ends: list[asyncio.StreamWriter],
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(65_536):
                is_cut = cut_at in chunk and self.cuts_left > 0
                self.cuts_left -= is_cut
                if is_cut:
                    break
                writer.write(chunk)
                await writer.drain()
        for end in ends:
            end.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@pytest.fixture
async def proxy(postgres: PostgresServer) -> AsyncIterator[CuttingProxy]:
    proxy = CuttingProxy(sa.make_url(postgres.database_url))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    yield proxy
    server.close()
    await asyncio.wait_for(proxy.is_quiet.wait(), SOON_S)
    await asyncio.sleep(0.05)


async def test_a_connection_lost_during_resubscription_loses_no_topic(
    admin: asyncpg.Connection, postgres: PostgresServer, proxy: CuttingProxy, topics: Topics
) -> None:
    url = sa.make_url(postgres.database_url).set(host="127.0.0.1", port=proxy.port, query={})
    listener, watch = Listener(url, topics), topics.watch(["fills"])
    await listener.listen(["keys", "fills"])
    proxy.cuts_left = 1
    await close_all_connections(admin, postgres)
    assert await watch.wait(SOON_S)
    await notify(postgres, "fills")
    assert await watch.wait(SOON_S)
    await listener.close()


async def test_a_connection_lost_during_the_first_listen_is_reported(
    postgres: PostgresServer, proxy: CuttingProxy, topics: Topics
) -> None:
    url = sa.make_url(postgres.database_url).set(host="127.0.0.1", port=proxy.port, query={})
    listener = Listener(url, topics)
    proxy.cuts_left = 1
    with pytest.raises(StoreUnavailable):
        await listener.listen(["fills"])
    await listener.listen(["fills"])
    await listener.close()


async def test_an_unreachable_server_is_unavailable(topics: Topics) -> None:
    listener = Listener(sa.make_url("postgresql+asyncpg://nobody@127.0.0.1:1/nothing"), topics)
    with pytest.raises(StoreUnavailable):
        await listener.listen(["fills"])
    await listener.close()


async def test_a_closed_listener_receives_nothing(
    postgres: PostgresServer, listener: Listener, topics: Topics
) -> None:
    watch = topics.watch(["fills"])
    await listener.listen(["fills"])
    await listener.close()
    await notify(postgres, "fills")
    assert not await watch.wait(0.1)


async def test_a_listener_closed_while_it_reconnects_stops_trying(
    admin: asyncpg.Connection, postgres: PostgresServer, listener: Listener, topics: Topics
) -> None:
    watch = topics.watch(["fills"])
    await listener.listen(["fills"])
    async with closed_to_clients(admin, postgres):
        assert not await watch.wait(0.1)
        await listener.close()
    assert not await watch.wait(20 * RECONNECT_S)


async def test_a_listener_that_never_listened_closes_at_once(topics: Topics) -> None:
    started = time.monotonic()
    await Listener(sa.make_url("postgresql+asyncpg://nobody@127.0.0.1:1/x"), topics).close()
    assert time.monotonic() - started < 10
