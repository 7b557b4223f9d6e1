"""What no formatter or linter looks after: sizes, leftovers, floats, and docs that fall behind."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from tests.rigs.refusals import a_refusal, every_refusal

import foretell
from foretell.creation.refusals import WORKER, worker_code
from foretell.data.refusals import DATA
from foretell.discovery.refusals import DISCOVERY
from foretell.domain.errors import command as command_errors
from foretell.domain.errors import creation as creation_errors
from foretell.domain.errors.chain import (
    CallFailed,
    DeploymentUnfit,
    DevChainFailed,
    ExchangeClosed,
    ExecutionReverted,
    MalformedTransaction,
    ProgramMissing,
    SandboxOnly,
    TxIdReused,
)
from foretell.domain.errors.exchange import ForeignProfile, NotEnoughFunds, TickNotFiner
from foretell.domain.errors.families import (
    ForetellError,
    InvalidFields,
    MalformedAmount,
    MalformedHex,
)
from foretell.domain.errors.http import UnknownRecord, UnknownSortField
from foretell.domain.errors.storage import (
    FolderInUse,
    JournalBehindTables,
    JournalDamaged,
    JournalFailed,
    JournalFormUnknown,
    JournalRowsDamaged,
    LeaseHeld,
    LeaseLost,
    ShardCountChanged,
    ShardMapUnfit,
    SnapshotFailed,
    SnapshotUnknown,
    TablesBehindSnapshot,
)
from foretell.edge.refusals import STATUS_BY_FAMILY
from foretell.relayer.refusals import RELAYER
from foretell.settings import Settings
from foretell.trading.refusals import TRADING

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = Path(foretell.__file__).parent
MODULES: Final = sorted(PACKAGE.rglob("*.py"))
SCRIPTS: Final = [*(ROOT / "contracts").glob("*.py"), *(ROOT / "requirements").glob("*.py")]
REFERENCE: Final = ROOT / "docs" / "reference"

MODULE_LINES_MAX: Final = 400
FUNCTION_LINES_MAX: Final = 60
APPLIED: Final = PACKAGE / "store" / "migrations" / "versions"
"""An applied migration is a list of steps that nobody ever edits, so nobody splits it either."""

LEFTOVERS: Final = re.compile(
    r"\b(TODO|FIXME|XXX)\b|NotImplementedError|unittest\.mock|pragma: no cover"
)
# Spelt so that it does not match itself.
MACHINE_PATH: Final = re.compile(r"/(?:home|root|work|Users)/\w|[A-Z]:\\+Users")
TRACKED: Final = ("src", "tests", "docs", "contracts", "requirements", "typings", ".ci")
NOT_TRACKED: Final = frozenset({"node_modules", "__pycache__"})

FLOATS_ALLOWED: Final = {
    "strict_json.py": "JSON has numbers; whoever reads an amount from one refuses what is no integer"
}

FAMILIES: Final = {*STATUS_BY_FAMILY, NotEnoughFunds}
ENDS_A_COMMAND: Final = {
    DeploymentUnfit,
    DevChainFailed,
    ProgramMissing,
    SandboxOnly,
    ForeignProfile,
    FolderInUse,
    JournalBehindTables,
    JournalDamaged,
    JournalFailed,
    JournalFormUnknown,
    JournalRowsDamaged,
    LeaseHeld,
    LeaseLost,
    ShardCountChanged,
    ShardMapUnfit,
    SnapshotUnknown,
    TablesBehindSnapshot,
}
"""Told by a command that ends, on a terminal, by its message."""
STAYS_INSIDE: Final = {
    CallFailed,
    ExchangeClosed,
    ExecutionReverted,
    MalformedTransaction,
    TxIdReused,
    creation_errors.RegistrationPending,
    SnapshotFailed,
    MalformedAmount,
    MalformedHex,
    TickNotFiner,
}
"""Caught by a worker or at a product's border, which says something of its own."""
SAYS_NO_CODE: Final = {UnknownRecord, UnknownSortField}
"""Of the discovery API, whose body has a type and words only."""
OFF_THE_WIRE: Final = FAMILIES | ENDS_A_COMMAND | STAYS_INSIDE | SAYS_NO_CODE
WORKERS_ALONE: Final = {InvalidFields, *WORKER}
"""Refusals whose code is the worker's word, where it has one."""

ON_THE_WIRE: Final = [
    kind
    for kind in every_refusal()
    if kind.__module__.startswith("foretell.")
    and kind.__module__ != command_errors.__name__
    and kind not in OFF_THE_WIRE
]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def is_float(node: ast.AST) -> bool:
    """Return whether an expression makes a float: a literal, or a call of `float`."""
    match node:
        case ast.Constant(value=float()) | ast.Call(func=ast.Name(id="float")):
            return True
        case _:
            return False


def tracked_files() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.is_file())
    for folder in TRACKED:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and NOT_TRACKED.isdisjoint(path.parts):
                yield path


def wire_code(kind: type[ForetellError]) -> str:
    """Return the code that clients see of a refusal."""
    refusal = a_refusal(kind)
    is_workers = kind in WORKERS_ALONE or kind.__module__ == creation_errors.__name__
    return worker_code(refusal) if is_workers else refusal.code


def test_no_module_is_longer_than_anybody_reads() -> None:
    modules = [path for path in (*MODULES, *SCRIPTS) if APPLIED not in path.parents]
    lines = {name_of(path): path.read_text().count("\n") for path in modules}
    assert {name: count for name, count in lines.items() if count > MODULE_LINES_MAX} == {}


def test_every_function_fits_a_screen() -> None:
    modules = [path for path in (*MODULES, *SCRIPTS) if APPLIED not in path.parents]
    lines = {
        f"{name_of(path)}: {node.name}": lines_of(node)
        for path in modules
        for node in functions(path)
    }
    assert {name: count for name, count in lines.items() if count > FUNCTION_LINES_MAX} == {}


def test_every_module_says_what_it_is_for() -> None:
    silent = [path for path in MODULES if not ast.get_docstring(tree_of(path))]
    assert [name_of(path) for path in silent] == []


def test_nothing_is_left_for_later() -> None:
    found = {name_of(path): LEFTOVERS.findall(path.read_text()) for path in (*MODULES, *SCRIPTS)}
    assert {name: words for name, words in found.items() if words} == {}


def test_the_domain_counts_in_integers() -> None:
    made = {
        f"{path.name}:{node.lineno}"  # type: ignore[attr-defined]  # an expression has a line
        for path in (PACKAGE / "domain").rglob("*.py")
        for node in ast.walk(tree_of(path))
        if is_float(node) and path.name not in FLOATS_ALLOWED
    }
    assert made == set()


def test_no_file_knows_the_machine_that_it_was_written_on() -> None:
    found = {
        name_of(path): MACHINE_PATH.findall(path.read_bytes().decode("latin-1"))
        for path in tracked_files()
    }
    assert len(found) > len(MODULES)
    assert {name: paths for name, paths in found.items() if paths} == {}


def test_a_process_that_serves_brings_no_slow_cryptography_along() -> None:
    """Signers are recovered by coincurve; eth-account is for the tests alone."""
    script = (
        "import sys, foretell.app.installation, foretell.cli.serve, foretell.cli.up\n"
        "print(sorted(sys.modules.keys() & {'eth_account', 'eth_keys', 'py_ecc', 'web3'}))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_command_that_only_helps_starts_nothing_heavy() -> None:
    script = (
        "import sys, foretell.cli.main\n"
        "print(sorted(sys.modules.keys() & {'litestar', 'sqlalchemy', 'uvicorn', 'PIL'}))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize("kind", ON_THE_WIRE, ids=lambda kind: kind.__name__)
def test_a_refusal_on_the_wire_has_a_status_that_says_whose_fault_it_is(
    kind: type[ForetellError],
) -> None:
    rows = {*STATUS_BY_FAMILY, *TRADING, *WORKER, *RELAYER, *DATA, *DISCOVERY} - {ForetellError}
    assert not rows.isdisjoint(kind.__mro__)


@pytest.mark.parametrize("kind", ON_THE_WIRE, ids=lambda kind: kind.__name__)
def test_a_code_on_the_wire_is_documented(kind: type[ForetellError]) -> None:
    pages = [page.read_text() for page in REFERENCE.glob("*.md")]
    code = f"`{wire_code(kind)}`"
    assert any(code in page for page in pages)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_a_setting_is_documented(name: str) -> None:
    page = (REFERENCE / "settings.md").read_text()
    assert f"`{name}`" in page or f"`FORETELL_{name.upper()}`" in page
