import json
import stat
from pathlib import Path

import msgspec
import pytest
from tests.rigs.values import a_key

from foretell.bench.rigs.world import make_world
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.sandbox_accounts import SANDBOX_ACCOUNTS, AccountRole
from foretell.domain.errors.command import NotRunning
from foretell.sandbox.ready import (
    FILE,
    Ready,
    SeededMarket,
    describe,
    read_ready,
    remove_ready,
    write_ready,
)

MARKET = SeededMarket("0x01", "1", "2", "rain")
DEPLOYMENT = make_world(a_key("ready")).deployment


def a_ready(base_url: str = "http://127.0.0.1:8000") -> Ready:
    return describe(base_url, "http://127.0.0.1:8545", DEPLOYMENT, MARKET)


def test_a_written_file_is_read_again(tmp_path: Path) -> None:
    write_ready(tmp_path, a_ready())
    assert read_ready(tmp_path) == a_ready()


def test_a_file_of_an_earlier_version_has_the_usual_domain(tmp_path: Path) -> None:
    ready = msgspec.to_builtins(a_ready())
    del ready["l1Domain"]
    (tmp_path / FILE).write_bytes(msgspec.json.encode(ready))
    assert read_ready(tmp_path) == a_ready()


def test_the_file_has_the_fields_of_its_documentation(tmp_path: Path) -> None:
    write_ready(tmp_path, a_ready())
    file = json.loads((tmp_path / FILE).read_text())
    assert set(file) == {
        *("clob", "worker", "relayer", "data", "discovery", "ws", "rpc", "chainId"),
        *("contracts", "accounts", "market", "l1Domain", "web"),
    }
    assert set(file["market"]) == {"conditionId", "tokenYes", "tokenNo", "slug"}
    assert set(file["accounts"][0]) == {"role", "address", "privateKey"}
    assert set(file["contracts"]) == set(ContractName)


def test_only_its_owner_can_read_it_and_no_draft_is_left(tmp_path: Path) -> None:
    write_ready(tmp_path, a_ready())
    (kept,) = tmp_path.iterdir()
    assert (kept.name, stat.S_IMODE(kept.stat().st_mode)) == (FILE, 0o600)


@pytest.mark.parametrize(
    ("base_url", "streams"),
    [
        ("http://127.0.0.1:8000", "ws://127.0.0.1:8000/clob/ws"),
        ("https://http.example", "wss://http.example/clob/ws"),
    ],
)
def test_streams_are_encrypted_when_the_apis_are(base_url: str, streams: str) -> None:
    ready = a_ready(base_url)
    assert (ready.clob, ready.ws) == (f"{base_url}/clob", streams)


def test_every_account_of_the_sandbox_is_listed_with_its_key() -> None:
    listed = a_ready().accounts
    assert [account.key for account in listed] == [each.private_key for each in SANDBOX_ACCOUNTS]
    assert [account.address.lower() for account in listed] == [
        each.address for each in SANDBOX_ACCOUNTS
    ]


def test_an_account_is_found_by_its_role_and_a_contract_by_its_name() -> None:
    ready = a_ready()
    assert ready.account(AccountRole.FAUCET).key == SANDBOX_ACCOUNTS[0].private_key
    assert ready.contract("exchange") == DEPLOYMENT.exchange


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"clob": 1}'])
def test_a_malformed_file_means_that_nothing_runs(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(NotRunning, match="foretell up"):
        read_ready(tmp_path)


def test_a_missing_file_means_that_nothing_runs(tmp_path: Path) -> None:
    write_ready(tmp_path, a_ready())
    remove_ready(tmp_path)
    remove_ready(tmp_path)
    with pytest.raises(NotRunning, match=f"no exchange runs on {tmp_path}"):
        read_ready(tmp_path)
