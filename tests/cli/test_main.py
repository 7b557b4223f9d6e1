import gc
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.rigs.in_process import Call

from foretell.__main__ import run
from foretell.cli import main
from foretell.domain.errors.command import ApiRefused, NotRunning
from foretell.domain.errors.families import ForetellError
from foretell.runtime.garbage_collection import STARTING_OBJECTS_MAX

COMMANDS = {
    (): "A complete prediction-market exchange",
    ("up",): "Run everything on this machine",
    ("serve",): "Run chosen roles",
    ("deploy",): "Deploy the contracts",
    ("clients",): "Print the lines with which clients of Polymarket and Kuest use a running",
    ("demo",): "Run a market from creation to redemption",
    ("solvency",): "Compare the collateral that the contracts hold with all claims on it",
    ("builder-fees",): "Set the rates by which a builder's fees are accounted",
    ("fee-shares",): "Print the fees that the exchange charged on the chain",
    ("wallet", "barred"): "Print a line for each barred wallet",
    ("wallet", "bar"): "Bar a wallet from matching",
    ("wallet", "unbar"): "End the bar of a wallet",
    ("doctor",): "Check that everything needed is installed",
    ("bench",): "Measure the exchange; each figure is printed next to its ceiling",
    ("bench", "data"): "Measure reads of the data and discovery APIs",
    ("bench", "order"): "Measure orders over HTTP, verified",
    ("bench", "latency"): "Measure one order at a time",
    ("bench", "durable"): "Measure orders over HTTP that wait for the disk",
    ("bench", "match"): "Measure matching in memory",
    ("bench", "journal"): "Measure the time until batches are durable",
    ("bench", "replay"): "Measure a start from a large journal",
    ("bench", "failover"): "Measure the time without a leader",
    ("bench", "limit"): "Measure",
    ("storage",): "Store metadata and images permanently",
    ("storage", "push"): "Post every stored item",
    ("market",): "Create, list, show and resolve markets",
    ("market", "create"): "Create the markets of a payload",
    ("market", "resolve"): "anyone proposes the answer with a bond",
    ("market", "dispute"): "After a first dispute the question is asked again",
    ("market", "withdraw"): "Withdraw the bonds and rewards",
    ("order",): "Place, cancel and list orders",
    ("order", "place"): "Amounts are never rounded",
    ("book",): "Show the book of an outcome",
    ("wallet",): "Deploy, fund and show a wallet",
    ("wallet", "fund"): "from the faucet",
    ("whitelist",): "Choose the accounts that may resolve",
    ("whitelist", "create"): "Deploy the creator's whitelist",
    ("index",): "Compute the sums of the index again",
    ("index", "rebuild"): "The exchange may run meanwhile",
    ("verify",): "Compare what is stored with where it comes from",
    ("verify", "data"): "from the chain, and compare",
    ("journal",): "Check, replay or export the journal",
    ("journal", "verify"): "Check every record, the hash chain through all of them",
    ("journal", "replay"): "Replay the journal in memory",
    ("journal", "export"): "one JSON object on each line",
}
NODE = "http://127.0.0.1:1"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_says_what_it_does(call: Call, command: tuple[str, ...]) -> None:
    called = call(*command, "--help")
    assert (called.code, called.err) == (0, "")
    assert COMMANDS[command] in " ".join(called.out.split())


def test_every_command_is_listed(call: Call) -> None:
    listed = call("--help").out
    names = [command[0] for command in COMMANDS if len(command) == 1]
    assert [name for name in names if f"│ {name} " not in listed] == []
    assert sorted(names) == sorted(
        [
            str(command.name or (command.callback and command.callback.__name__))
            for command in main.app.registered_commands
        ]
        + [str(group.name) for group in main.app.registered_groups]
    )


def test_a_command_imports_with_few_searches_for_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    thresholds = gc.get_threshold()
    monkeypatch.setattr(sys, "argv", ["foretell", "--version"])
    with pytest.raises(SystemExit):
        run()
    searched_after = gc.get_threshold()[0]
    gc.set_threshold(*thresholds)
    assert searched_after == STARTING_OBJECTS_MAX


def test_the_version_is_the_one_that_is_installed(call: Call) -> None:
    assert call("--version") == (0, f"foretell {version('foretell')}\n", "")


@pytest.mark.parametrize(
    ("command", "default"),
    [
        (("up",), "[default: (.foretell)]"),
        (("up",), "[default: (8000)]"),
        (("up",), "[default: (8545)]"),
        (("serve",), "[default: (all, in one process)]"),
        (("serve",), "[default: (no separate processes)]"),
        (("serve",), "[default: (1 with --workers)]"),
        (("deploy",), "[default: (the node's chain)]"),
        (("bench", "order"), "[default: 10000]"),
        (("bench", "match"), "[default: 20000]"),
        (("journal", "export"), "[default: (the oldest)]"),
        (("builder-fees",), "--taker-share-bps        <int range> [0<=x<=9999]"),
        (("builder-fees",), "--maker-flat-bps         <int range> [0<=x<=100]"),
        (("fee-shares",), "--referrer-share-bps        <int range> [0<=x<=10000]"),
    ],
)
def test_an_option_says_its_default_or_its_range(
    call: Call, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], default: str
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert default in call(*command, "--help").out


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (("dance",), "No such command 'dance'"),
        (("up", "--colour"), "No such option: --colour"),
        (("up", "--port", "x"), "unable to parse string as an integer"),
        (("bench", "order", "--orders", "1"), "should be greater than or equal to 100"),
        (("fee-shares", "--referrer-share-bps", "10001"), "should be less than or equal to 10000"),
    ],
)
def test_a_wrong_command_line_ends_with_2(
    call: Call, arguments: tuple[str, ...], wrong: str
) -> None:
    called = call(*arguments)
    assert (called.code, called.out) == (2, "")
    assert wrong in " ".join(called.err.replace("│", "").split())


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (("journal", "verify"), {}, "there is no journal in .foretell/journal"),
        (("demo",), {}, "no exchange runs on .foretell; start one with: foretell up"),
        (("serve",), {}, "FORETELL_RPC_URL is not set: foretell serve needs your node"),
        (("deploy",), {}, "FORETELL_RPC_URL is not set: foretell deploy needs your node"),
        (("up",), {"RPC_URL": NODE}, "foretell up is allowed in the sandbox only"),
        (("serve", "sales"), {"RPC_URL": NODE}, "sales is not a role; roles are creation, data,"),
        (("serve",), {"RPC_URL": NODE}, "FORETELL_MASTER_KEY is not set"),
        (("deploy",), {"RPC_URL": NODE}, "the node gave no valid response to web3_clientVersion"),
        (("up", "--port", "0"), {}, "FORETELL_PORT: Input should be greater than or equal to 1"),
        (("up",), {"PORT": "x"}, "FORETELL_PORT: Input should be a valid integer"),
        (
            ("up",),
            {"PROT": "80"},
            "unknown settings: FORETELL_PROT; docs/reference/settings.md lists all",
        ),
        (("up",), {"LOG_LEVEL": "loud"}, "FORETELL_LOG_LEVEL: Input should be 'debug', 'info',"),
        (("up",), {"CONFIRMATIONS": "0"}, "FORETELL_CONFIRMATIONS: Input should be greater"),
        (
            ("up",),
            {"DATABASE_URL": "my.db"},
            "FORETELL_DATABASE_URL: Value error, must begin with postgresql",
        ),
        (("up", "--data", "/proc/nowhere"), {}, "/proc/nowhere: No such file or directory"),
        (("up", "--data", "/dev/null"), {}, "/dev/null: File exists"),
    ],
)
def test_a_refusal_is_one_line_that_says_what_to_change(
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    message: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"FORETELL_{name}", value)
    called = call(*arguments)
    assert (called.code, called.out) == (1, "")
    assert called.err.startswith(f"error: {message}")
    assert called.err.count("\n") == 1


def test_every_wrong_setting_is_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORETELL_PORT", "x")
    monkeypatch.setenv("FORETELL_CHAIN_ID", "-1")
    assert {"FORETELL_PORT:", "FORETELL_CHAIN_ID:"} <= set(call("doctor").err.split())


def test_a_wrong_setting_is_not_printed(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be a password."""
    monkeypatch.setenv("FORETELL_DATABASE_URL", "postgres://me:hunter2@db.example/foretell")
    called = call("doctor")
    assert "FORETELL_DATABASE_URL" in called.err
    assert "hunter2" not in called.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("port = ", "error: foretell.toml cannot be read: Invalid value (at end of document)"),
        ("prot = 1", "error: FORETELL_PROT: Extra inputs are not permitted"),
        ("port = 0", "error: FORETELL_PORT: Input should be greater than or equal to 1"),
    ],
)
def test_a_wrong_settings_file_is_refused(
    call: Call, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "foretell.toml").write_text(text)
    called = call("doctor")
    assert (called.code, called.err) == (1, message + "\n")


def raising(error: BaseException) -> Callable[[], None]:
    def app() -> None:
        raise error

    return app


@pytest.mark.parametrize(
    "message", ["[bold]x[/bold]", "[/x]", "/tmp/[1]/x", '{"error": ["a", "b"]}', "x" * 500]
)
def test_a_refusal_is_printed_as_it_is(
    call: Call, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    monkeypatch.setattr(main, "app", raising(ForetellError(message)))
    assert call() == (1, "", f"error: {message}\n")


def test_the_first_refusal_of_a_group_of_errors_is_printed(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = ExceptionGroup("inner", [ApiRefused("GET /", 500, "no")])
    group = ExceptionGroup("outer", [ValueError("x"), inner, NotRunning("x")])
    monkeypatch.setattr(main, "app", raising(group))
    assert call() == (1, "", "error: GET / answered 500: no\n")


@pytest.mark.parametrize(
    "fault", [ValueError("x"), OSError("x"), ExceptionGroup("x", [ValueError("x")])]
)
def test_an_internal_error_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    monkeypatch.setattr(main, "app", raising(fault))
    with pytest.raises(type(fault)) as raised:
        main.run()
    assert raised.value is fault


def test_the_package_is_a_command_too() -> None:
    called = subprocess.run(
        [sys.executable, "-m", "foretell", "--help"], capture_output=True, text=True, check=True
    )
    assert "A complete prediction-market exchange" in called.stdout
