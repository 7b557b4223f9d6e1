"""`foretell up` and `foretell demo`, as the README describes them."""

import asyncio
import contextlib
import signal
import stat
from pathlib import Path

import httpx
import pytest
from tests.rigs.installation import Running, run_foretell
from tests.rigs.postgres import PostgresServer

from foretell.bench.rigs.ports import free_port
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID, AccountRole

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e")]

ACTS = (
    "finalized: 3 transactions",
    "Bob bids 0.40 for 100 No: matched, a mint of 100 sets",
    "Bob takes it: 40 Yes change hands at 0.65",
    "GET /positions: Bob's Safe holds 100 No, 40 Yes",
    "POST /operations/merge-position: 50 sets merged",
    "redeeming before the resolution is refused: 502",
    "POST /operations/redeem-position: 40 collateral arrived",
    "Alice sells 10 Yes at 0.70 by version 1, Dora's wallet buys by version 2",
    "1580 in = 1490 out + 90 still locked",
)


@pytest.mark.spec(5)
async def test_the_sandbox_answers_at_the_addresses_of_its_file(shared: Running) -> None:
    ready = await shared.ready()
    assert ready.chain_id == SANDBOX_CHAIN_ID
    assert {account.role for account in ready.accounts} >= {
        AccountRole.FAUCET,
        AccountRole.CREATOR,
        AccountRole.OPERATOR,
        AccountRole.TRADER,
    }
    async with httpx.AsyncClient(timeout=60) as client:
        for root in (ready.clob, ready.worker, ready.relayer, ready.data, ready.discovery):
            assert (await client.get(f"{root}/")).status_code == 200
        book = await client.get(f"{ready.clob}/book", params={"token_id": ready.market.token_yes})
        (market,) = (
            await client.get(f"{ready.discovery}/markets", params={"slug": ready.market.slug})
        ).json()
    assert (book.json()["bids"], book.json()["asks"]) == ([], [])
    assert (book.json()["tick_size"], book.json()["min_order_size"]) == ("0.01", "5")
    assert market["conditionId"] == ready.market.condition_id
    assert "Foretell runs" in shared.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_stops_everything_and_leaves_no_process(
    running: Running, number: signal.Signals
) -> None:
    before = len(running.processes())
    code = running.stop(number)
    assert (before > 1, code, running.processes()) == (True, 0, [])
    assert not (running.data / "ready.json").exists()
    assert "stopped; everything is kept" in running.output


async def test_attack_l8_only_its_owner_may_read_what_an_installation_stores(
    shared: Running,
) -> None:
    """The database, the journal, the blobs, the chain's state and the deployment are private."""
    mode_by_name: dict[str, str] = {}
    for path in (shared.data, *shared.data.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # a draft, which has its last name now
            mode_by_name[str(path.relative_to(shared.data))] = stat.filemode(path.lstat().st_mode)
    private = {"-rw-------", "drwx------"}
    assert {name: mode for name, mode in mode_by_name.items() if mode not in private} == {}
    expected = {"foretell.db", "foretell.db-wal", "deployment.json", "chain/end.json", "blobs"}
    assert mode_by_name.keys() >= expected


async def test_a_second_installation_on_the_same_folder_or_ports_is_refused(
    shared: Running, tmp_path: Path
) -> None:
    data, port, chain_port = shared.data, shared.port, shared.chain_port
    folder = run_foretell("up", "--data", str(data), cwd=tmp_path)
    other = ("up", "--data", "other")
    taken = run_foretell(*other, "--port", str(port), cwd=tmp_path)
    ports = ("--port", str(free_port()), "--chain-port", str(chain_port))
    chain_taken = run_foretell(*other, *ports, cwd=tmp_path)
    assert (folder.returncode, taken.returncode, chain_taken.returncode) == (1, 1, 1)
    assert f"another process uses {data} (process " in folder.stderr
    assert f"127.0.0.1:{port} is taken" in taken.stderr
    assert f"127.0.0.1:{chain_port} is taken" in chain_taken.stderr
    assert "FORETELL_CHAIN_PORT" in chain_taken.stderr


async def test_the_doctor_checks_a_running_installation(shared: Running) -> None:
    well = run_foretell("doctor", "--data", str(shared.data), cwd=shared.folder)
    assert well.returncode == 0
    assert "/relayer answers OK" in well.stdout


async def test_the_doctor_says_that_nothing_runs(stopped: Running) -> None:
    ended = run_foretell("doctor", "--data", str(stopped.data), cwd=stopped.folder)
    assert ended.returncode == 0
    assert "none runs on" in ended.stdout


async def test_a_demo_without_an_installation_says_how_to_start_one(fresh: Running) -> None:
    refused = run_foretell("demo", "--data", "nowhere", cwd=fresh.folder)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "start one with: foretell up" in refused.stderr


ALL_ACTS = (
    "finalized: 12 transactions",
    "Alice buys 100 Yes of Anna at 0.50, Bob 100 No: a mint of 100 sets",
    "Bob converts 100 No of Anna and of Ben: 100 collateral, and 100 Yes of Cleo",
    "Bob sells Alice 40 Yes of Cleo at 0.20: CONFIRMED",
    "closed Anna and Ben as No",
    "Alice has 452 and Bob's Safe 548: 1000 in = 1000 out, GET /oi says 0 of each outcome",
    "0 collateral is left under the positions of all events",
    "Quentin disputes it, with 500 at stake: the question is asked again",
    "7200 s pass on the chain without a dispute",
    "Quentin withdraws 1255: both bonds, half of Petra's, and the reward of 5",
    "GET /markets: proposed, disputed, proposed, resolved",
    "Dana redeems 100 Yes for 100 collateral",
    "2505 in = 2255 out + 250 of Petra's bond owed to the treasury",
)


@pytest.mark.spec(14, 19)
async def test_the_demo_plays_all_its_stories(
    stopped: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an installation of its own: hours pass on its chain, and it has a domain of its own.

    Sums that are rebuilt while it runs are exact.

    A finding: the demo signed in the default domain, whatever `l1_domain` was.
    """
    monkeypatch.setenv("FORETELL_L1_DOMAIN", "Example Exchange")
    await stopped.start()
    monkeypatch.delenv("FORETELL_L1_DOMAIN")
    played = run_foretell("demo", "--all", "--data", str(stopped.data), cwd=stopped.folder)
    assert played.returncode == 0, played.stderr
    assert [act for act in (*ACTS, *ALL_ACTS) if act not in played.stdout] == []
    monkeypatch.setenv("FORETELL_CHAIN_PORT", str(stopped.chain_port))
    rebuild_sums_beside(stopped)


async def test_sums_on_postgresql_are_rebuilt_while_the_exchange_runs(
    fresh: Running, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(postgres.empty_database)
    monkeypatch.setenv("FORETELL_DATABASE_URL", postgres.database_url)
    await fresh.start()
    played = run_foretell("demo", "--data", str(fresh.data), cwd=fresh.folder)
    assert played.returncode == 0, played.stderr
    monkeypatch.setenv("FORETELL_CHAIN_PORT", str(fresh.chain_port))
    rebuild_sums_beside(fresh)
    assert not (fresh.data / "foretell.db").exists()


def rebuild_sums_beside(running: Running) -> None:
    """Rebuild the sums of the index while the installation runs, and compare all tables with the chain."""
    rebuilt = run_foretell("index", "rebuild", "--data", str(running.data), cwd=running.folder)
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert "generation 1 is read from now on" in rebuilt.stdout
    verified = run_foretell("verify", "data", "--data", str(running.data), cwd=running.folder)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "every row that was compared is as computed from the chain" in verified.stdout
