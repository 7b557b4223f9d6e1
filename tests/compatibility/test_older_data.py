"""Journals, snapshots and databases of earlier commits, opened by today's program.

A folder here is named after the commit that wrote it. `sandbox.tar.xz` is the data folder of a
`foretell up` that played `demo --all` and was traded on: two snapshots, nine commands after the
newest. `engines.sql.xz` is a PostgreSQL database with the journals of two engines and a treasury.
`expected.json` is what that commit saw in them.
"""

import asyncio
import hashlib
import json
import lzma
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import asyncpg
import httpx
import pytest
import sqlalchemy as sa
from tests.e2e.conftest import an_installation
from tests.rigs.digest import treasury_digest
from tests.rigs.installation import Running, run_foretell
from tests.rigs.orders.earlier import encoded_before_version_2
from tests.rigs.postgres import migrate

from foretell.chain.rpc import Rpc
from foretell.chain.views import ViewCall, call_views
from foretell.domain.contracts.calldata import IS_OPERATOR
from foretell.domain.contracts.deployment import parse_deployment
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import decode_command
from foretell.domain.exchange.snapshot import state_digest
from foretell.domain.exchange.state import State
from foretell.domain.treasury.folds import ShardFold, TreasuryFold
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.files.reader import fold
from foretell.journal.files.reader import read_entries as read_entries_of_files
from foretell.journal.files.snapshots import read_snapshot, snapshot_paths
from foretell.journal.port import Snapshot
from foretell.journal.postgres.rows import read_entries
from foretell.journal.postgres.snapshots import newest_snapshot
from foretell.store.database import Database
from foretell.store.trading.projected import load_sequences

pytestmark = pytest.mark.anyio

FOLDERS: Final = sorted(path.parent for path in Path(__file__).parent.glob("*/expected.json"))
TREASURY: Final = "-1"
EXPIRES: Final = "0.2"
"""The price of the one order with an expiration, which leaves the book in time."""


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def written(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.param
    return folder


@pytest.fixture
def expected(written: Path) -> Any:
    return json.loads((written / "expected.json").read_text())


@pytest.fixture
def stopped(written: Path, tmp_path: Path) -> Iterator[Running]:
    """An installation that the older commit ran and stopped."""
    with an_installation(tmp_path) as running:
        running.data.mkdir()
        with tarfile.open(written / "sandbox.tar.xz") as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
            archive.extractall(running.data)
        yield running


@pytest.fixture
def database_url(written: Path, postgres_url: str, tmp_path: Path) -> Iterator[str]:
    """A database as the older commit left it, journals and tables."""
    name = f"older_{written.name}_{tmp_path.name}"
    url = sa.make_url(postgres_url).set(database=name)
    text = url.render_as_string(hide_password=False)
    asyncio.run(_execute(postgres_url, f'CREATE DATABASE "{name}"'))
    asyncio.run(_execute(text, lzma.decompress((written / "engines.sql.xz").read_bytes()).decode()))
    yield text
    asyncio.run(_execute(postgres_url, f'DROP DATABASE "{name}" WITH (FORCE)'))


async def _execute(url: str, statements: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statements)
    await connection.close()


@pytest.mark.case("J-07")
def test_a_journal_in_files_gives_the_same_state(stopped: Running, expected: Any) -> None:
    folder = stopped.data / "journal"
    newest, *older = [read_snapshot(path).snapshot for path in reversed(snapshot_paths(folder))]
    folds = [fold(folder, base) for base in (newest, *older, None)]
    assert [(state_digest(state), sequence) for state, sequence in folds] == [
        (expected["state"], expected["sequence"])
    ] * 3


@pytest.mark.parametrize("shard", ["0", "1", TREASURY])
async def test_a_journal_in_rows_gives_the_same_state(
    shard: str, database_url: str, expected: Any
) -> None:
    connection = await asyncpg.connect(database_url)
    snapshot = await newest_snapshot(connection, ShardNumber(int(shard)))
    await connection.close()
    bases = [None] if snapshot is None else [None, snapshot]
    digests = [
        await asyncio.to_thread(_digest_of_rows, database_url, shard, base) for base in bases
    ]
    assert (len(bases), digests) == (
        expected["bases"][shard],
        [expected["rows"][shard]] * len(bases),
    )


def _digest_of_rows(url: str, shard: str, base: Snapshot | None) -> str:
    kind = TreasuryFold if shard == TREASURY else ShardFold
    state = kind(None if base is None else base.payload)
    for entry in read_entries(url, ShardNumber(int(shard)), 0 if base is None else base.sequence):
        state.take(entry.payload)
    return (
        treasury_digest(state.treasury)
        if isinstance(state, TreasuryFold)
        else state_digest(state.state)
    )


def test_a_journal_in_files_has_the_same_effects(stopped: Running, expected: Any) -> None:
    entries = read_entries_of_files(stopped.data / "journal")
    assert _effects(entry.payload for entry in entries) == expected["effects"]["files"]


@pytest.mark.parametrize("shard", ["0", "1"])
async def test_a_journal_in_rows_has_the_same_effects(
    shard: str, database_url: str, expected: Any
) -> None:
    entries = await asyncio.to_thread(list, read_entries(database_url, ShardNumber(int(shard)), 0))
    assert _effects(entry.payload for entry in entries) == expected["effects"][shard]


def _effects(payloads: Iterable[bytes]) -> str:
    """Return the SHA-256 of the results and effects of all commands."""
    state, seen = State(), hashlib.sha256()
    for payload in payloads:
        outcome = apply(state, decode_command(payload))
        seen.update(encoded_before_version_2((outcome.result, outcome.effects)))
    return seen.hexdigest()


@pytest.mark.case("J-07")
async def test_a_database_is_migrated_to_the_schema_of_today(
    database_url: str, expected: Any
) -> None:
    url = database_url.replace("postgresql://", "postgresql+asyncpg://")
    await migrate(url)
    async with Database(url) as database, database.reading() as tx:
        assert await load_sequences(tx) == expected["projected"]


@pytest.mark.case("J-07")
@pytest.mark.xdist_group("e2e")
async def test_an_installation_continues_where_it_stopped(stopped: Running, expected: Any) -> None:
    ready = await stopped.start()
    async with httpx.AsyncClient(base_url=ready.clob, timeout=60) as client:
        book = (await client.get("/book", params={"token_id": expected["token"]})).json()
    levels = {
        side: [[level["price"], level["size"]] for level in book[side]] for side in ("bids", "asks")
    }
    bids = [level for level in expected["bids"] if level[0] != EXPIRES]
    assert [level for level in levels["bids"] if level[0] != EXPIRES] == bids
    assert levels["asks"] == expected["asks"]
    assert stopped.stop() == 0, stopped.output
    verified = run_foretell("journal", "verify", "--data", str(stopped.data), cwd=stopped.folder)
    assert verified.returncode == 0, verified.stderr


@pytest.mark.xdist_group("e2e")
async def test_markets_are_made_on_the_contracts_of_an_older_sandbox(stopped: Running) -> None:
    """Its contracts stay: their questions state no end, and their events convert without a seal."""
    await stopped.start()
    played = run_foretell("demo", "--all", "--data", str(stopped.data), cwd=stopped.folder)
    assert played.returncode == 0, played.stdout + played.stderr
    assert stopped.stop() == 0, stopped.output


@pytest.mark.xdist_group("e2e")
async def test_the_exchanges_of_an_older_sandbox_settle_batches_of_trades(stopped: Running) -> None:
    """They stay as they are, and get the contract for batches as an operator."""
    before = parse_deployment((stopped.data / "deployment.json").read_bytes())
    assert before.batch_settler is None
    ready = await stopped.start()
    settler = ready.contract("batchSettler")
    assert ready.contract("exchange") == before.exchange
    async with Rpc(ready.rpc) as rpc:
        views = [ViewCall(each, IS_OPERATOR, (settler,)) for each in before.exchanges]
        assert await call_views(rpc, views) == [True, True]
    assert stopped.stop() == 0, stopped.output
