"""M4: databases, chains and master keys that are lost, older or another's, in real data folders."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs
from tests.rigs.in_process import installed, sandbox_settings
from tests.rigs.values import a_key

from foretell.app.keys import MASTER_KEY_FILE
from foretell.app.lasting_refusals import LASTING_REFUSALS
from foretell.app.origin import FILE
from foretell.app.roles import Role
from foretell.chain.rpc import Rpc
from foretell.domain.errors.command import ForeignChain
from foretell.domain.exchange.profiles import Separators
from foretell.journal.files.reader import read_entries
from foretell.sdk.http import HttpClient, wait_for
from foretell.sdk.trading import TradingClient, Wallet
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.tables import api_keys

pytestmark = pytest.mark.anyio

ROLES = (Role.TRADING,)
NO_SEPARATORS = Separators((), (), {})
TABLES = ("foretell.db", "foretell.db-wal", "foretell.db-shm")
KEYS = "/auth/api-keys"
WITHIN_S = 180.0


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The sandbox, its chain in a folder that outlives the test's databases."""
    return sandbox_settings(tmp_path)


class Owner:
    """A wallet that creates, uses and revokes keys of an installation."""

    def __init__(self, http: HttpClient, chain_id: int) -> None:
        wallet = Wallet(a_key("owner"))
        self.client = TradingClient(http, wallet, chain_id, NO_SEPARATORS, lambda: int(time.time()))

    async def create(self) -> Any:
        return await self.client.create_key()

    async def status(self, credentials: Any) -> int:
        """Return the status of a request that these credentials sign."""
        self.client.credentials = credentials
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            url = self.client.http.base_url + KEYS
            return (await http.get(url, headers=self.client.l2_headers("GET", KEYS))).status_code

    async def revoke(self, credentials: Any) -> None:
        self.client.credentials = credentials
        headers = self.client.l2_headers("DELETE", "/auth/api-key")
        await self.client.http.send("DELETE", "/auth/api-key", b"", headers)

    async def send(self, method: str, path: str, body: bytes = b"") -> Any:
        """Send a request that the credentials sign, and return the answer."""
        headers = self.client.l2_headers(method, path, body)
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            url = self.client.http.base_url + path
            answer = await http.request(method, url, content=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def keys(self) -> tuple[list[str], list[str]]:
        """Return the active keys of the owner as a builder, and its read-only keys."""
        builders = await self.send("GET", "/auth/builder-api-key")
        readers = await self.send("GET", "/auth/readonly-api-keys")
        return [each["key"] for each in builders], readers

    async def reads_with(self, key: str) -> int:
        """Return the status of a request for orders with a read-only key."""
        address = self.client.wallet.address
        headers = {"SERVICE_ADDRESS": address, "SERVICE_READONLY_API_KEY": key}
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            url = self.client.http.base_url + "/data/orders"
            return (await http.get(url, headers=headers)).status_code


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Owner]:
    async with installed(settings, ROLES), HttpClient(settings.base_url) as http:
        yield Owner(http, settings.chain_id)


def copy_tables(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for name in TABLES:
        (target / name).unlink(missing_ok=True)
        if (source / name).exists():
            shutil.copy(source / name, target / name)


def parts_named(logs: list[Any]) -> list[str]:
    return [entry["part"] for entry in logs if "another than at the last start" in entry["event"]]


async def test_attack_m4_a_lost_database_revives_no_revoked_key(settings: Settings) -> None:
    """The same wallet signs the same nonce, and gets a set that no one had before."""
    async with running(settings) as owner:
        first = await owner.create()
        assert await owner.status(first) == 200
        await owner.revoke(first)
        assert await owner.status(first) == 401
    for name in TABLES:
        (settings.data / name).unlink(missing_ok=True)
    with capture_logs() as logs:
        async with running(settings) as owner:
            second = await owner.create()
            assert set(second).isdisjoint(first)
            assert [await owner.status(each) for each in (first, second)] == [401, 200]
    assert parts_named(logs) == ["database"]


async def test_attack_m4_an_older_database_keeps_later_revocations(
    settings: Settings, tmp_path: Path
) -> None:
    """A copy from before two revocations is restored: neither set is valid, and a third one is made."""
    async with running(settings) as owner:
        first = await owner.create()
    copy_tables(settings.data, tmp_path / "older")
    async with running(settings) as owner:
        assert await owner.status(first) == 200
        await owner.revoke(first)
        second = await owner.create()
        await owner.revoke(second)
    copy_tables(tmp_path / "older", settings.data)
    async with installed(
        settings, [Role.RELAYER]
    ):  # it accepts keys too, without a trading process
        assert await statuses(settings) == ["revoked", "revoked"]
    copy_tables(tmp_path / "older", settings.data)
    with capture_logs() as logs:
        async with running(settings) as owner:
            assert [await owner.status(each) for each in (first, second)] == [401, 401]
            third = await owner.create()
            assert len({first, second, third}) == 3
            assert [await owner.status(each) for each in (first, second, third)] == [401, 401, 200]
    assert [entry["keys"] for entry in logs if "keys are revoked again" in entry["event"]] == [2]


async def test_an_older_database_keeps_later_deletions_of_builders_and_read_only_keys(
    settings: Settings, tmp_path: Path
) -> None:
    """A copy from before the deletions is restored: neither key works, whatever it is asked for."""
    async with running(settings) as owner:
        await owner.create()
        builder = await owner.send("POST", "/auth/builder-api-key")
        reader = (await owner.send("POST", "/auth/readonly-api-key"))["apiKey"]
        assert await owner.keys() == ([builder["key"]], [reader])
    copy_tables(settings.data, tmp_path / "older")
    async with running(settings) as owner:
        await owner.create()
        await owner.send("DELETE", "/auth/builder-api-key", b"")
        await owner.send("DELETE", "/auth/readonly-api-key", msgspec.json.encode({"key": reader}))
        assert await owner.keys() == ([], [])
    copy_tables(tmp_path / "older", settings.data)
    with capture_logs() as logs:
        async with running(settings) as owner:
            await owner.create()
            assert await owner.keys() == ([], [])
            assert await owner.reads_with(reader) == 401
    assert [entry["keys"] for entry in logs if "keys are revoked again" in entry["event"]] == [2]


async def statuses(settings: Settings) -> list[str]:
    async with Database(settings.database) as database, database.reading() as tx:
        return sorted(row.status for row in await tx.all(sa.select(api_keys.c.status)))


async def test_attack_m4_a_restart_and_a_copy_of_the_present_keep_all_keys(
    settings: Settings, tmp_path: Path
) -> None:
    async with running(settings) as owner:
        revoked = await owner.create()
        await owner.revoke(revoked)
        present = await owner.create()
    copy_tables(settings.data, tmp_path / "present")
    copy_tables(tmp_path / "present", settings.data)
    with capture_logs() as logs:
        async with running(settings) as owner:
            assert [await owner.status(each) for each in (revoked, present)] == [401, 200]
            assert await owner.create() == present
    assert [entry for entry in logs if entry["log_level"] in {"warning", "error"}] == []


async def test_attack_m4_another_master_key_is_said_in_one_line(settings: Settings) -> None:
    async with running(settings) as owner:
        first = await owner.create()
    (settings.data / MASTER_KEY_FILE).unlink()
    with capture_logs() as logs:
        async with running(settings) as owner:
            assert await owner.status(first) == 401
    assert parts_named(logs) == ["master_key"]


async def test_attack_m4_another_chain_under_orders_is_refused(settings: Settings) -> None:
    """A chain that was deleted has another first block; the journal has commands of the old one."""
    async with installed(settings, [Role.TRADING, Role.INDEXER]):
        async with Rpc(settings.devchain_url) as rpc:
            await rpc.call("evm_mine")
        await wait_for("a command", partial(has_commands, settings), WITHIN_S)
    chain = settings.data / "chain"
    chain.rename(settings.data / "other chain")
    await another_second()
    with pytest.raises(ForeignChain, match="cannot be settled there"):
        await start(settings)
    (settings.data / FILE).unlink()
    with pytest.raises(ForeignChain):
        await start(settings)
    shutil.rmtree(chain)
    (settings.data / "other chain").rename(chain)
    await start(settings)


async def another_second() -> None:
    """Wait until a new chain's first block has another time, and so another hash."""
    await asyncio.sleep(1.1)


async def has_commands(settings: Settings) -> bool | None:
    return next(read_entries(settings.data / "journal"), None) is not None or None


async def test_another_chain_without_orders_is_said_and_used(settings: Settings) -> None:
    await start(settings)
    shutil.rmtree(settings.data / "chain")
    await another_second()
    with capture_logs() as logs:
        await start(settings)
        await start(settings)
    assert parts_named(logs) == ["chain"]


async def test_a_note_that_cannot_be_read_is_written_again(settings: Settings) -> None:
    await start(settings)
    whole = (settings.data / FILE).read_bytes()
    (settings.data / FILE).write_bytes(whole[:-5])
    await start(settings)
    assert (settings.data / FILE).read_bytes() == whole


async def test_a_start_that_sees_what_is_noted_writes_nothing(settings: Settings) -> None:
    """Several processes of a folder start at once; what one has noted, another leaves."""
    await start(settings)
    noted = (settings.data / FILE).stat().st_ino
    await start(settings)
    async with installed(settings, [Role.DATA]):
        pass
    assert (settings.data / FILE).stat().st_ino == noted


def test_a_chain_of_others_is_a_lasting_refusal() -> None:
    """A supervised process would be started again for ever."""
    assert issubclass(ForeignChain, LASTING_REFUSALS)


async def start(settings: Settings) -> None:
    async with installed(settings, ROLES):
        pass
