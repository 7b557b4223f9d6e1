"""Rate limits of whole installations: bursts over HTTP, and limits that change without a restart."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from structlog.testing import capture_logs
from tests.rigs.clock import Clock
from tests.rigs.in_process import installed, sandbox_settings

from foretell.app import api_server
from foretell.app.installation import Installation
from foretell.app.roles import Role
from foretell.app.running import run_until_stopped
from foretell.settings import Settings

BOUND_S = 180.0
CONNECTIONS_MAX = 40  # more than the 30 requests that wait for their turn


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The published limits, and an operator's on market creation; reads wait for no other bound."""
    return sandbox_settings(
        tmp_path,
        rate_limits={"creation POST /prepare-auth": "5/5s", "relayer": "5/5s"},
        public_reads_max=50,
        public_reads_per_client_max=50,
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the limits, which a test moves: however long a burst takes, it comes at one moment."""
    clock = Clock()
    monkeypatch.setattr(api_server, "monotonic_ms", clock.now_ms)
    return clock


@pytest.fixture
async def running(settings: Settings, clock: Clock) -> AsyncIterator[Installation]:
    del clock
    roles = [Role.CREATION, Role.RELAYER, Role.DATA, Role.DISCOVERY]
    async with installed(settings, roles) as running:
        yield running


class Answer(NamedTuple):
    status: str
    headers: dict[str, str]


def waits_ms(answers: list[Answer]) -> list[int]:
    return sorted(int(answer.headers.get("x-throttled-ms", "0")) for answer in answers)


async def until_waiting(running: Installation, role: Role, requests: int) -> None:
    """Return when so many requests to an API wait for their turn."""
    assert running.api is not None
    limiter = running.api._limits_by_role[role].limiter
    async with asyncio.timeout(BOUND_S):
        while limiter.others.requests < requests:  # noqa: ASYNC110 - publishes no event
            await asyncio.sleep(0.01)


async def burst(url: str, method: str, path: str, count: int) -> list[Answer]:
    """Send requests as fast as they are answered, each on a connection of its own.

    It shares the event loop with the server, so it costs less than a client that pools connections. It keeps few
    connections: both ends are this process's files, and a short queue of the system's makes a connection wait a second.
    """
    host, port = url.removeprefix("http://").split(":")
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()

    places = asyncio.Semaphore(CONNECTIONS_MAX)

    async def request() -> Answer:
        async with places:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(head)
            status, *lines = (await reader.read()).partition(b"\r\n\r\n")[0].decode().split("\r\n")
            writer.close()
        return Answer(status.split()[1], dict(line.lower().split(": ", 1) for line in lines))

    answers = await asyncio.gather(*(request() for _ in range(count)))
    assert "429" not in {answer.status for answer in answers}
    return answers


@pytest.mark.deviation(1)
@pytest.mark.case("G-05")
@pytest.mark.anyio
@pytest.mark.spec(126, 144, 148, 149)
async def test_a_real_burst_at_each_api(
    running: Installation, settings: Settings, clock: Clock
) -> None:
    """Twice the limit is answered in full, the second half later; the data API never delays."""
    url = settings.base_url
    tags = asyncio.create_task(burst(url, "GET", "/discovery/tags", 230))
    creation = asyncio.create_task(burst(url, "POST", "/create-market/prepare-auth", 10))
    relayer = asyncio.create_task(burst(url, "GET", "/relayer/limits", 10))
    data = await burst(url, "GET", "/data/", 500)
    assert waits_ms(data) == [0] * 500
    assert "ratelimit-limit" not in data[0].headers
    await until_waiting(running, Role.CREATION, 5)
    await until_waiting(running, Role.RELAYER, 5)
    await until_waiting(running, Role.DISCOVERY, 30)
    clock.move(5_000)
    assert waits_ms(await creation) == [0] * 5 + [5_000] * 5
    assert waits_ms(await relayer) == [0] * 5 + [5_000] * 5
    clock.move(5_000)
    assert waits_ms(await tags) == [0] * 200 + [10_000] * 30


def write_limits(text: str) -> None:
    Path("foretell.toml").write_text(f"[rate_limits]\n{text}\n")


@pytest.mark.spec(146)
@pytest.mark.usefixtures("clock")
def test_the_limits_are_read_again_on_a_signal(tmp_path: Path) -> None:
    """An operator changes the file and sends HUP; the process answers on, by the new limits."""
    settings = sandbox_settings(tmp_path)
    installation = Installation(settings, [Role.DISCOVERY])
    seen: list[str] = []

    async def reload_and_stop() -> None:
        url = f"{settings.base_url}/tags"
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            for text in ('"discovery GET /tags" = "7/10s"', '"discovery GET /tags" = "many"'):
                seen.append((await http.get(url)).headers["ratelimit-limit"])
                write_limits(text)
                signal.raise_signal(signal.SIGHUP)
                ends_at_s = time.monotonic() + BOUND_S
                while not [each for each in logs if "limits" in each["event"]]:
                    assert time.monotonic() < ends_at_s
                    await asyncio.sleep(0.01)
                logs.clear()
            answer = await http.get(url)
            seen.append(answer.headers["ratelimit-limit"])
            assert answer.headers["ratelimit-remaining"] == "4"
        signal.raise_signal(signal.SIGTERM)

    with capture_logs() as logs:
        run_until_stopped(
            installation, reload_and_stop, lambda: None, on_hangup=installation.reload_limits
        )
    assert seen == ["200", "7", "7"]


def test_a_process_without_an_api_ignores_the_signal(tmp_path: Path) -> None:
    Installation(sandbox_settings(tmp_path), [Role.INDEXER]).reload_limits()
