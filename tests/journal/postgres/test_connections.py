"""Connections to the one of several servers that takes writes."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import asyncpg
import pytest
import sqlalchemy as sa
from tests.journal.rig import a_cable, be_late, only_read

from foretell.bench.rigs.ports import free_port
from foretell.journal.postgres import connections
from foretell.journal.postgres.connections import connect, connected, servers

pytestmark = pytest.mark.anyio

STARTUP = b"foretell journal"
ANY = "target_session_attrs=read-write"
PATIENT_S = 60.0


@pytest.mark.parametrize(
    ("url", "each"),
    [
        ("postgresql://u:p@a/db?x=y", ["postgresql://u:p@a/db?x=y"]),
        ("no url", ["no url"]),
        ("postgresql+asyncpg:///db?host=/a", ["postgresql:///db?host=/a"]),
        (
            "postgresql+asyncpg://u:p%20q@/db?host=a,/b&port=1,2",
            [
                f"postgresql://u:p%20q@/db?host=a&port=1&{ANY}",
                f"postgresql://u:p%20q@/db?host=%2Fb&port=2&{ANY}",
            ],
        ),
        (
            "postgresql:///db?host=a:1&host=b:2&target_session_attrs=any",
            [
                "postgresql:///db?host=a%3A1&target_session_attrs=any",
                "postgresql:///db?host=b%3A2&target_session_attrs=any",
            ],
        ),
        (
            "postgresql://u@a:1,[::1]:2/db",
            [
                f"postgresql://u@/db?host=a%3A1&{ANY}",
                f"postgresql://u@/db?host=%5B%3A%3A1%5D%3A2&{ANY}",
            ],
        ),
    ],
)
def test_every_server_that_a_url_names_has_a_url_of_its_own(url: str, each: list[str]) -> None:
    assert servers(url) == each


@contextlib.asynccontextmanager
async def a_silent_server() -> AsyncIterator[str]:
    """Yield a server that takes connections and sends nothing, as a stopped one does."""
    over = asyncio.Event()

    async def be_silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    async with await asyncio.start_server(be_silent, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        over.set()


def host_of(url: str) -> str:
    real = sa.make_url(url)
    return str(real.query.get("host") or f"{real.host}:{real.port or 5432}")


def among(url: str, *others: str) -> str:
    """Return a URL that names other servers before the real one."""
    query = {"host": ",".join((*others, host_of(url)))}
    several = sa.make_url(url).set(host=None, port=None, query=query)
    return several.render_as_string(hide_password=False)


async def is_read_only(url: str) -> str:
    """Return whether the chosen server is read-only: on or off."""
    async with connected(url) as connection:
        return str(await connection.fetchval("SHOW transaction_read_only"))


async def test_a_silent_server_delays_no_connection(
    journal_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECT_DEADLINE_S", PATIENT_S)
    async with a_silent_server() as silent:
        started = time.monotonic()
        connection = await connect(among(journal_url, silent, f"127.0.0.1:{free_port()}"))
        assert time.monotonic() - started < PATIENT_S / 2
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close()


async def test_a_read_only_server_is_skipped_for_one_that_takes_writes(
    journal_url: str,
) -> None:
    """The one that takes writes is the last of them, and the later to answer."""
    with a_cable(journal_url) as reading, a_cable(journal_url) as writing:
        reading.spoil(STARTUP, only_read)
        assert await is_read_only(reading.url) == "on"
        reading.spoil(STARTUP, only_read)
        writing.spoil(STARTUP, be_late)
        assert await is_read_only(among(writing.url, host_of(reading.url))) == "off"


async def test_servers_of_which_none_takes_writes_are_refused(journal_url: str) -> None:
    name = sa.make_url(journal_url).database
    connection = await connect(journal_url)
    await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    await connection.close()
    try:
        with pytest.raises(asyncpg.InternalClientError, match="target attribute"):
            await connect(among(journal_url, host_of(journal_url)))
    finally:
        connection = await connect(journal_url)
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await connection.close()
