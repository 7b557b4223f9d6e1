"""Private parts of libraries: the modules that use one, and the ceilings that keep it as it is."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import foretell

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = Path(foretell.__file__).parent


class PrivatePart(NamedTuple):
    """A part of a library that its documentation does not promise, and the text that uses it."""

    module: str
    library: str
    text: str


PRIVATE_PARTS: Final = (
    PrivatePart(
        "chain/connections/node_connections.py", "aiohttp", "class _Connector(aiohttp.TCPConnector)"
    ),
    PrivatePart("chain/connections/body_receiver.py", "aiohttp", "transport.set_protocol(handler)"),
    PrivatePart("app/gateway.py", "uvicorn", "def capture_signals("),
    PrivatePart("app/http/parser_refusals.py", "httptools", '"Invalid HTTP version"'),
    PrivatePart("app/http/early_data.py", "uvicorn", "uvicorn.protocols.http.flow_control"),
    PrivatePart(
        "app/http/framework_connection.py", "uvicorn", "uvicorn.protocols.http.httptools_impl"
    ),
    PrivatePart(
        "app/http/placed_connection.py", "uvicorn", "uvicorn.protocols.http.httptools_impl"
    ),
    PrivatePart(
        "app/http/stream_connection.py",
        "uvicorn",
        "uvicorn.protocols.websockets.websockets_sansio_impl",
    ),
    PrivatePart("app/http/stream_connection.py", "websockets", "self.conn.events"),
    PrivatePart("app/signer_recovery/curve.py", "coincurve", "coincurve._libsecp256k1"),
    PrivatePart("edge/documents/pages.py", "litestar", "def render_options("),
    PrivatePart("edge/telemetry.py", "prometheus-client", "prometheus_client.utils"),
    PrivatePart("store/sqlite/cursor.py", "sqlalchemy", "_awaitable_cursor_close = False"),
    PrivatePart("store/sqlite/cursor.py", "aiosqlite", '"_execute"'),
    PrivatePart("journal/files/pending_events.py", "uvloop", '"_get_backend_id"'),
    PrivatePart("journal/files/pending_events.py", "asyncio", '"_selector"'),
    PrivatePart("runtime/spawning.py", "asyncio", "asyncio.base_subprocess"),
)
OF_PYTHON: Final = frozenset({"asyncio"})
"""Libraries of Python itself, which have no ceiling: the tests of the module notice a Python that has changed."""
DOCUMENTED: Final = frozenset(
    {
        "PIL",
        "aiohttp",
        "alembic",
        "alembic.command",
        "alembic.config",
        "asyncpg",
        "coincurve",
        "cryptography.exceptions",
        "cryptography.hazmat.primitives.ciphers",
        "cryptography.hazmat.primitives.ciphers.aead",
        "httptools",
        "httpx",
        "litestar",
        "litestar.datastructures",
        "litestar.di",
        "litestar.exceptions",
        "litestar.handlers",
        "litestar.openapi.plugins",
        "litestar.openapi.spec",
        "litestar.params",
        "litestar.response",
        "litestar.routes",
        "litestar.status_codes",
        "litestar.types",
        "msgspec",
        "multipart",
        "prometheus_client",
        "prometheus_client.core",
        "prometheus_client.registry",
        "pydantic",
        "pydantic_settings",
        "rich.console",
        "rich.markup",
        "rich.panel",
        "rich.table",
        "sha3",
        "sqlalchemy",
        "sqlalchemy.dialects",
        "sqlalchemy.engine.interfaces",
        "sqlalchemy.ext.asyncio",
        "sqlalchemy.ext.compiler",
        "sqlalchemy.pool",
        "sqlalchemy.sql.compiler",
        "sqlalchemy.sql.functions",
        "structlog",
        "structlog.dev",
        "structlog.typing",
        "typer",
        "typing_extensions",
        "uvicorn",
        "uvloop",
        "websockets.asyncio.client",
        "websockets.exceptions",
    }
)
"""Modules of libraries whose documentation describes them."""
OPEN_TO_SUBCLASSES: Final = frozenset(
    {
        "Collector",
        "BaseSettings",
        "FunctionElement[str]",
        "FunctionElement[Any]",
        "ReturnTypeFromArgs[str]",
        "sa.types.TypeDecorator[Any]",
    }
)
"""Classes of libraries that are documented as something to derive from."""
FREE_OF_METHODS: Final = frozenset({"msgspec"})
"""Libraries whose classes are derived from for their fields alone."""


def module_name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the libraries' modules that a module imports, each with an imported name."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found = [(alias.name, alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found = [(node.module, alias.asname or alias.name) for alias in node.names]
        else:
            continue
        for module, name in found:
            if module.split(".")[0] not in {*sys.stdlib_module_names, "foretell"}:
                yield module, name


def undocumented(path: Path) -> set[str]:
    """Return what a module uses of libraries that nobody promised: modules, names, base classes."""
    imported = list(imports(path))
    library_by_name = {name: module.split(".")[0] for module, name in imported}
    found = {module for module, _ in imported if module not in DOCUMENTED}
    found |= {name for _, name in imported if name.startswith("_")}
    has_getattr = "getattr(" in path.read_text()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base) for base in node.bases]
            found |= {
                base
                for base in bases
                if library_by_name.get(base.split(".")[0], "msgspec") not in FREE_OF_METHODS
                and base not in OPEN_TO_SUBCLASSES
            }
        elif has_getattr and isinstance(node, ast.Call):
            found |= set(re.findall(r"^getattr\(.*?['\"](_\w+)['\"]", ast.unparse(node)))
    return found


def requirement(library: str) -> tuple[str, str]:
    """Return the requirement of a library in pyproject.toml, and what stands beside it."""
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    (line,) = (each for each in lines if re.match(rf'\s*"{library}(\[\w+\])?>', each))
    wanted, _, reason = line.strip().partition(",  #")
    return wanted, reason


@pytest.mark.parametrize("part", PRIVATE_PARTS, ids=lambda part: f"{part.module} {part.library}")
def test_a_private_part_of_a_library_is_used_where_the_list_says(part: PrivatePart) -> None:
    assert part.text in (PACKAGE / part.module).read_text()


def test_no_other_module_uses_a_private_part_of_a_library() -> None:
    """A module that imports what no documentation promises, or overrides a library's class, is in the list."""
    used = {
        module_name(path): names for path in PACKAGE.rglob("*.py") if (names := undocumented(path))
    }
    assert used.keys() <= {part.module for part in PRIVATE_PARTS}, used
    assert used["app/gateway.py"] == {"uvicorn.Server"}
    assert used["app/signer_recovery/curve.py"] == {"coincurve._libsecp256k1"}
    assert used["journal/files/pending_events.py"] == {"_get_backend_id", "_selector"}


@pytest.mark.parametrize("library", sorted({part.library for part in PRIVATE_PARTS} - OF_PYTHON))
def test_a_library_with_a_used_private_part_has_a_ceiling_and_its_reason(library: str) -> None:
    wanted, reason = requirement(library)
    assert re.search(r"<\d", wanted), f"{wanted} has no ceiling"
    assert len(reason.split()) > 3, f"{wanted} has no reason beside it"


@pytest.mark.parametrize("library", sorted({part.library for part in PRIVATE_PARTS} - OF_PYTHON))
def test_a_ceiling_is_below_the_next_release_that_may_change_the_part(library: str) -> None:
    """A major release above the locked one is never admitted."""
    wanted, _ = requirement(library)
    ceiling = [int(part) for part in re.findall(r"<([\d.]+)", wanted)[0].split(".")]
    locked = re.search(
        rf"^{library}==(\d+)\.(\d+)", (ROOT / "requirements/run.txt").read_text(), re.MULTILINE
    )
    assert locked is not None
    major, minor = map(int, locked.groups())
    assert [major, minor] < ceiling <= [major + 1]


def test_the_tool_configuration_lets_nobody_touch_a_private_attribute() -> None:
    """Ruff refuses `other._attribute` in the package (SLF001); only its few pardons in place remain."""
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert configuration["select"] == ["ALL"]
    pardoned = {
        pattern for pattern, codes in configuration["per-file-ignores"].items() if "SLF001" in codes
    }
    assert pardoned == {"tests/**"}
    pardons = [
        f"{module_name(path)}: {line.partition('#')[2].strip()}"
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text().splitlines()
        if "noqa: SLF001" in line
    ]
    assert [each for each in pardons if "public API" not in each] == []
