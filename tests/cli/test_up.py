import io
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr
from rich.console import Console
from tests.rigs.in_process import Call, sandbox_settings, unmeasured
from tests.rigs.values import a_key

from foretell.app.installation import Installation
from foretell.bench.rigs.ports import free_port
from foretell.bench.rigs.world import make_world
from foretell.cli import up
from foretell.cli.up import print_addresses, run_up
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.errors.chain import SandboxOnly
from foretell.domain.errors.storage import FolderInUse
from foretell.sandbox.ready import Ready, SeededMarket, describe, read_ready, write_ready
from foretell.settings import Settings

MARKET = SeededMarket("0x01", "11", "12", "rain")


def a_ready(settings: Settings) -> Ready:
    deployment = make_world(a_key("up")).deployment
    return describe(settings.base_url, settings.devchain_url, deployment, MARKET)


def greeting(settings: Settings) -> str:
    console = Console(file=io.StringIO(), width=60)
    print_addresses(console, a_ready(settings), settings, 7.25)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_greeting_has_every_address(settings: Settings) -> None:
    printed = greeting(settings).replace("\n", "")
    ready = a_ready(settings)
    urls = (ready.clob, ready.worker, ready.relayer, ready.data, ready.discovery, ready.rpc)
    assert [url for url in urls if url not in printed] == []
    assert "Foretell runs (7.2 s)" in printed
    assert f"chain id {SANDBOX_CHAIN_ID}" in printed


def test_the_greetings_commands_are_lines_that_can_be_copied(settings: Settings) -> None:
    lines = greeting(settings).splitlines()
    assert f"  foretell demo --data {settings.data}" in lines
    assert f"  curl '{settings.base_url}/clob/book?token_id=11'" in lines


def test_the_greeting_names_the_folder_only_when_it_is_not_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "  foretell demo\n" in greeting(Settings())
    monkeypatch.setenv("FORETELL_DATA", "elsewhere")
    assert "  foretell demo\n" in greeting(Settings())


def test_the_command_is_named_as_it_was_called(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/venv/bin/foretell", "up"])
    assert f"  /opt/venv/bin/foretell demo --data {settings.data}" in greeting(settings)


def test_a_sandbox_with_public_keys_does_not_run_on_a_node_of_the_operator(tmp_path: Path) -> None:
    settings = sandbox_settings(tmp_path, rpc_url=SecretStr("http://127.0.0.1:1"))
    with pytest.raises(SandboxOnly, match="unset FORETELL_RPC_URL, or use foretell serve"):
        run_up(settings, Console(quiet=True))
    assert not settings.data.exists()


def test_attack_m4_shards_without_postgresql_are_refused_before_the_start(
    settings: Settings, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three children named the cause, and the start ended with a trace."""
    monkeypatch.setenv("FORETELL_SHARDS", "2")
    ended = call("up", "--data", str(settings.data))
    assert (ended.code, len(ended.err.splitlines()), ended.out) == (1, 1, "")
    assert "FORETELL_DATABASE_URL is not set" in ended.err
    assert "FORETELL_SHARDS=2, need PostgreSQL" in ended.err
    assert not settings.data.exists()


def test_a_second_start_on_a_folder_keeps_the_file_of_the_first(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "set_up_logs", lambda _: None)
    first = Installation(settings)
    first.take_folder()
    write_ready(settings.data, a_ready(settings))
    with pytest.raises(FolderInUse):
        run_up(settings, Console(quiet=True))
    assert read_ready(settings.data) == a_ready(settings)


def test_attack_l2_a_start_without_room_on_the_disk_is_one_line(tmp_path: Path) -> None:
    """It once wrote seven tracebacks. No file of the process may grow here."""
    command = (sys.executable, "-m", "foretell", "up", "--data", str(tmp_path), "--port")
    limited = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    chain = ("--chain-port", str(free_port()))
    ended = subprocess.run(
        (sys.executable, "-c", limited, *command, str(free_port()), *chain),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=unmeasured(),
    )
    lines = ended.stderr.splitlines()
    assert (ended.returncode, len(lines)) == (1, 1), ended.stderr
    assert "make room on the disk of the data folder" in lines[0]
