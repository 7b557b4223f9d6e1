"""Authentication while the tables of keys never answer, on SQLite and on PostgreSQL.

Keys are read in places of their own, which strangers who guess keys share in turn, until a deadline.
"""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import httpx
import pytest
import sqlalchemy as sa
from tests.rigs.trading import Trader, TradingRig, a_rig_on
from tests.rigs.values import NOW_S, a_buy
from tests.store.endless_tables import endless

from foretell.domain.values.credentials import L2Signer
from foretell.edge.auth import KEY_AGE_MS_MAX
from foretell.store.database import Database
from foretell.store.public_reads.places import PublicReadLimits, ReadKind, WaitBounds
from foretell.store.tables import api_keys, builder_keys, readonly_keys

pytestmark = pytest.mark.anyio

LIMITS: Final = PublicReadLimits(key_s=60.0, key_bounds=WaitBounds(wait_s=60.0, per_client=4))
"""However busy the machine is, a key is read in time whose table ends."""
SOON_S: Final = 0.5
"""The deadline of reads of keys while their tables never end."""
WITHIN_S: Final = 60.0
TABLES: Final = (api_keys, builder_keys, readonly_keys)
GUESSES: Final = 40
STOPPED, NO_PLACE = (503, "read_too_slow"), (429, "too_many_requests")


@pytest.fixture
async def database(each_database_url: str) -> AsyncIterator[Database]:
    async with Database(each_database_url, LIMITS) as database:
        yield database


@pytest.fixture
async def rig(database: Database, tmp_path: Path) -> AsyncIterator[TradingRig]:
    async with a_rig_on(tmp_path / "journal", database) as rig:
        await rig.open("market", "alice")
        yield rig


@contextlib.asynccontextmanager
async def never_read(database: Database, *tables: sa.Table) -> AsyncIterator[None]:
    """Have tables of keys never end during a block, and reads of keys end soon."""
    reads = database._public[ReadKind.KEY]
    async with endless(database, *tables):
        database._public[ReadKind.KEY] = reads._replace(deadline_s=SOON_S)
        try:
            yield
        finally:
            database._public[ReadKind.KEY] = reads


def outcome(answer: httpx.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json().get("code")


async def guess(rig: TradingRig, trader: Trader) -> httpx.Response:
    """Send a request with a key id that nobody has."""
    headers = trader.l2_headers("GET", "/data/orders") | {"SERVICE_API_KEY": str(uuid.uuid4())}
    return await rig.client.get("/data/orders", headers=headers)


async def until_guesses_wait(database: Database) -> None:
    places = database._public[ReadKind.KEY].places
    async with asyncio.timeout(WITHIN_S):
        while not places.waiting:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.01)


async def test_data_a_key_that_is_not_read_in_time_is_refused(
    rig: TradingRig, database: Database
) -> None:
    alice = await rig.trader("alice")
    key = str(uuid.uuid4())
    reader = {"SERVICE_ADDRESS": alice.address, "SERVICE_READONLY_API_KEY": key}
    signature = L2Signer(alice.secret).sign(str(NOW_S), "GET", "/builder/trades", b"")
    builder = {
        "SERVICE_BUILDER_API_KEY": key,
        "SERVICE_BUILDER_TIMESTAMP": str(NOW_S),
        "SERVICE_BUILDER_PASSPHRASE": "a passphrase",
        "SERVICE_BUILDER_SIGNATURE": signature,
    }
    async with never_read(database, *TABLES):
        own = await alice.send("GET", "/data/orders")
        read = await rig.client.get("/data/orders", headers=reader)
        built = await rig.client.delete("/auth/builder-api-key", headers=builder)
    assert [outcome(each) for each in (own, read, built)] == [STOPPED] * 3
    after = await alice.send("GET", "/data/orders")
    assert after.status_code == 200, after.text


async def test_data_a_known_key_trades_on_while_strangers_guess_keys(
    rig: TradingRig, database: Database
) -> None:
    """Forty guesses wait for a table that never answers; each ends, and the trader with a known key waits for none."""
    alice, bob = await rig.trader("alice"), await rig.trader("bob")
    await alice.get("/data/orders")
    async with never_read(database, *TABLES):
        guesses = [asyncio.create_task(guess(rig, alice)) for _ in range(GUESSES)]
        await until_guesses_wait(database)
        for salt in ("1", "2", "3"):
            placed = await alice.placed(a_buy("alice", salt=salt))
            canceled = await alice.send("DELETE", "/order", {"orderID": placed["orderID"]})
            assert canceled.json()["canceled"] == [placed["orderID"]]
        answers = await asyncio.gather(*guesses)
    assert {outcome(each) for each in answers} == {STOPPED, NO_PLACE}
    assert all(int(each.headers["retry-after"]) >= 1 for each in answers)
    assert (await bob.send("GET", "/data/orders")).status_code == 200


async def test_data_a_read_only_key_that_was_read_lately_waits_for_no_table(
    rig: TradingRig, database: Database
) -> None:
    """Its table was read at each request, in places that strangers who guess keys fill."""
    alice = await rig.trader("alice")
    key = (await alice.send("POST", "/auth/readonly-api-key")).json()["apiKey"]
    headers = {"SERVICE_ADDRESS": alice.address, "SERVICE_READONLY_API_KEY": key}
    guessed = headers | {"SERVICE_READONLY_API_KEY": str(uuid.uuid4())}
    before = [await rig.client.get("/data/orders", headers=each) for each in (headers, guessed)]
    async with never_read(database, readonly_keys):
        known = [await rig.client.get("/data/orders", headers=each) for each in (headers, guessed)]
        rig.clock.move(KEY_AGE_MS_MAX)
        late = await rig.client.get("/data/orders", headers=headers)
    assert [each.status_code for each in (*before, *known)] == [200, 401] * 2
    assert outcome(late) == STOPPED


async def test_data_a_key_whose_time_in_the_cache_is_over_is_read_until_the_deadline(
    rig: TradingRig, database: Database
) -> None:
    alice = await rig.trader("alice")
    await alice.get("/data/orders")
    rig.clock.move(KEY_AGE_MS_MAX)
    async with never_read(database, *TABLES):
        assert outcome(await alice.send("GET", "/data/orders")) == STOPPED
    after = await alice.send("GET", "/data/orders")
    assert after.status_code == 200, after.text
