import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs
from tests.rigs.in_process import sandbox_settings
from tests.rigs.postgres import PostgresServer
from tests.rigs.values import a_key

from foretell.app import worker_processes
from foretell.app.origin import check_shards
from foretell.app.worker_processes import Fleet
from foretell.bench.rigs.ports import is_free
from foretell.bench.rigs.world import make_world
from foretell.chain.deploy import store_deployment
from foretell.domain.errors.command import ChildRefused, PortTaken
from foretell.domain.errors.storage import FolderInUse, ShardCountChanged
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.postgres.leases import JournalPlace, find_endpoint
from foretell.settings import Settings
from foretell.store.database import Database

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("fleet")]

WITHIN_S = 180.0
WORKERS = 2
WINDOW_S = 9.9
"""Of the ten seconds of the limit, less what is lost by counting them in milliseconds."""


@pytest.fixture
def settings(tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of an operator with a node that does not answer now, as child processes read them."""
    postgres.empty_database()
    own = sandbox_settings(
        tmp_path,
        rpc_url=SecretStr("http://127.0.0.1:1"),
        database_url=SecretStr(postgres.database_url),
        master_key=SecretStr(a_key("master").hex()),
        shards=1,
    )
    monkeypatch.setattr(worker_processes, "START_DEADLINE_S", WITHIN_S)
    monkeypatch.setenv("FORETELL_RPC_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("FORETELL_DATABASE_URL", postgres.database_url)
    monkeypatch.setenv("FORETELL_MASTER_KEY", a_key("master").hex())
    store_deployment(own.deployment_file, make_world(a_key("serve")).deployment)
    return own


@pytest.fixture
async def fleet(settings: Settings) -> AsyncIterator[Fleet]:
    fleet = Fleet(settings, WORKERS)
    async with asyncio.timeout(WITHIN_S):
        await fleet.start()
    yield fleet
    await fleet.stop()
    assert members(settings) == {}, "a fleet that stops leaves nothing"
    assert is_free(settings.port)


def members(settings: Settings) -> dict[int, str]:
    """Return the command lines of the fleet's processes that run, by their ids."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if "--member" in line and str(settings.data) in line:
                found[int(folder.name)] = line
    return found


@pytest.mark.case("A-11")
async def test_killed_processes_are_started_again_and_folder_and_port_stay_taken(
    fleet: Fleet, settings: Settings
) -> None:
    with pytest.raises(FolderInUse):
        await Fleet(settings, 1).start()
    before = members(settings)
    assert len(before) == WORKERS + 1
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(WITHIN_S):
        while len(members(settings).keys() - before) < WORKERS + 1:  # noqa: ASYNC110 - other processes
            await asyncio.sleep(0.05)
        async with httpx.AsyncClient(timeout=WITHIN_S) as client:
            answer = await client.get(f"http://127.0.0.1:{settings.port}/ok")
    assert answer.status_code == 200
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(fleet.wait(), 0.01)


async def test_a_fleet_with_a_port_of_another_program_starts_no_process(settings: Settings) -> None:
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", settings.port)
    async with listener:
        with pytest.raises(PortTaken):
            await Fleet(settings, 1).start()
    assert members(settings) == {}


async def test_another_number_of_shards_is_refused_before_a_process_starts(
    settings: Settings, journal_url: str
) -> None:
    await find_endpoint(JournalPlace(journal_url, ShardNumber(0), 2))
    changed = {"shards": 3, "journal": "postgres", "database_url": SecretStr(journal_url)}
    with capture_logs() as logs, pytest.raises(ShardCountChanged, match="created with 2 shards"):
        await Fleet(settings.model_copy(update=changed), WORKERS).start()
    assert logs == []
    assert members(settings) == {}
    assert is_free(settings.port)


async def test_fewer_shards_than_journals_in_files_are_refused_before_a_process_starts(
    settings: Settings,
) -> None:
    for shard in range(3):
        (settings.data / f"journal-{shard}").mkdir()
    (settings.data / "journal-treasury").mkdir()
    with pytest.raises(ShardCountChanged, match="created with 3 shards, and 1 are configured"):
        await Fleet(settings, WORKERS).start()
    assert members(settings) == {}


async def test_attack_m4_more_shards_than_at_the_first_start_are_refused_before_a_process_starts(
    settings: Settings,
) -> None:
    async with Database(settings.database) as database:
        await check_shards(database, settings.model_copy(update={"shards": 2}))
    with pytest.raises(ShardCountChanged, match="created with 2 shards, and 3 are configured"):
        await Fleet(settings.model_copy(update={"shards": 3}), WORKERS).start()
    assert members(settings) == {}
    assert is_free(settings.port)


async def test_a_child_that_refuses_to_run_ends_the_fleet(
    settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    settings.deployment_file.unlink()
    async with asyncio.timeout(WITHIN_S):
        with pytest.raises(ExceptionGroup) as group:
            await Fleet(settings, WORKERS).start()
    assert group.group_contains(ChildRefused)
    assert members(settings) == {}
    assert "deployment.json does not exist; run foretell deploy" in capfd.readouterr().err


async def limits_seen(settings: Settings, requests: int) -> list[str]:
    """Return the limits in the answers to requests, each on a connection of its own."""
    seen = []
    for _ in range(requests):
        async with httpx.AsyncClient(timeout=WITHIN_S, trust_env=False) as client:
            answer = await client.get(f"http://127.0.0.1:{settings.port}/ok")
        assert answer.status_code == 200
        seen.append(answer.headers["ratelimit-limit"])
    return seen


@pytest.mark.spec(146)
async def test_a_fleet_lets_each_process_read_its_rate_limits_again(
    fleet: Fleet, settings: Settings, tmp_path: Path
) -> None:
    assert set(await limits_seen(settings, 10)) == {"50"}
    (tmp_path / "foretell.toml").write_text('[rate_limits]\n"trading GET /" = "999/10s"\n')
    fleet.reload_limits()
    async with asyncio.timeout(WITHIN_S):
        while set(await limits_seen(settings, 20)) != {"999"}:  # noqa: ASYNC110 - other processes
            await asyncio.sleep(0.05)


async def test_the_processes_of_a_fleet_share_a_limit(fleet: Fleet, settings: Settings) -> None:
    """A burst at both admits the limit once, but for one request that each admits without a lease.

    On a busy machine a process may get its part of the limit late, but never more than that.
    """
    del fleet
    url, loop = f"http://127.0.0.1:{settings.port}/ok", asyncio.get_running_loop()
    async with httpx.AsyncClient(timeout=WITHIN_S, trust_env=False) as client:

        async def ask() -> tuple[httpx.Response, float]:
            return await client.get(url), loop.time()

        sent_s = loop.time()
        asked = await asyncio.gather(*(ask() for _ in range(80)))
    assert {answer.status_code for answer, _ in asked} == {200}
    waited_ms = [int(answer.headers.get("x-throttled-ms", 0)) for answer, _ in asked]
    assert sum(ms < 5_000 for ms in waited_ms) >= 50 // WORKERS
    assert sum(at_s - sent_s < WINDOW_S for _, at_s in asked) <= 50 + WORKERS
