"""Write the pages of docs/reference that are made from the code: operations, errors, contracts, metrics and settings.

`make reference` writes them; the tests fail if a page differs from the code.
"""

import ast
import functools
import importlib
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from litestar import Litestar
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from foretell.edge.documents.errors import Refusal, Refusals
from foretell.edge.documents.openapi import operations_of
from foretell.edge.refusals import status_of
from foretell.sdk.refusals import cure_of
from foretell.settings import CHECKOUT, Settings

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "docs" / "reference"
SOURCE: Final = ROOT / "src" / "foretell"
ARTIFACTS: Final = SOURCE / "chain" / "artifacts"
ORDER: Final = ("function", "event", "error")
NOTE: Final = "<!-- Written by `make reference`. Change the code, not this page. -->\n"


class ApiPart(NamedTuple):
    """An API in the page of errors: its title, its page, and its module of routes."""

    title: str
    page: str
    product: str
    routes: str


APIS: Final = (
    ApiPart("Trading API", "trading-api.md", "trading", "trading.routes.app"),
    ApiPart("Market creation", "market-creation.md", "creation", "creation.routes"),
    ApiPart("Relayer", "relayer.md", "relayer", "relayer.routes"),
    ApiPart("Data API", "data-api.md", "data", "data.routes"),
    ApiPart("Discovery API", "discovery-api.md", "discovery", "discovery.routes"),
    ApiPart("Web app", "web.md", "web", "web.routes"),
)
ERRORS: Final = """\
# Errors

Every refusal of the APIs, with its code, its status, its cause and what a client can do about it. The form of a refusal
is on the page of its API; `refusal_of` of the [SDK](sdk.md#errors) reads all of them. An answer names the values that it
saw, and `details` has them for programs where the API has that field.

A request that was answered with 425, 429 or 503 and `Retry-After` did nothing: send it again after that time. After any
other answer below 500, the same request gets the same answer until something changes. What to do if no answer comes is
in [Retries](sdk.md#retries).
"""
METRICS: Final = """\
# Metrics

`/metrics` of every process has these in the format of Prometheus, besides those of Python and of the process itself
(`python_`, `process_`). Labels that name a route have the route's pattern, so that their number is bounded.
"""
SETTINGS: Final = """\
# All settings

Every setting by its name. [Settings and commands](settings.md) explains them by subject and says where they are read
from. The environment variable of a setting is `FORETELL_` and its name in capitals. A secret is never shown.
"""
OPERATIONS: Final = """\
# Operations

Every operation of the APIs: its method and path, what signs it, its parameters (those with a star are required), and
what it does. The page of each API explains them; its OpenAPI document (see [API documents](api-documents.md)) has the
bodies, the answers and the refusals with examples.
"""
INTERFACES: Final = """\
# Contract interfaces

Every function, log and error of the contracts, with the types as clients encode them. [Contracts](contracts.md) explains
them. Functions that change nothing are marked `view` or `pure`; parameters of a log with a star are indexed.
"""
FAMILIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CounterMetricFamily": "counter",
        "Counter": "counter",
        "GaugeMetricFamily": "gauge",
        "Gauge": "gauge",
        "HistogramMetricFamily": "histogram",
        "Histogram": "histogram",
    }
)


def main() -> int:
    """Write the pages that differ from the code, and print their names."""
    for name, text in pages().items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    return 0


@functools.cache
def pages() -> Mapping[str, str]:
    """Return the pages by their names."""
    return {
        "errors.md": NOTE + ERRORS + "".join(map(_errors, APIS)),
        "operations.md": NOTE + OPERATIONS + "".join(map(_operations, APIS)),
        "contract-interfaces.md": NOTE + INTERFACES + "".join(map(_interface, _artifacts())),
        "metrics.md": NOTE + METRICS + _metrics(),
        "all-settings.md": NOTE + SETTINGS + _settings(),
    }


def _errors(api: ApiPart) -> str:
    refusals: Refusals = importlib.import_module(f"foretell.{api.product}.refusals").DOCUMENTED
    kinds_by_code: dict[tuple[str, int], set[Refusal]] = {}
    for operation in operations_of(_app(api)):
        for kind in refusals.of_operation(operation.method, operation.described):
            place = (refusals.code_of(kind), status_of(refusals.rows, kind))
            kinds_by_code.setdefault(place, set()).add(kind)
    lines = [f"\n## {api.title}\n", f"\n[Page of the API]({api.page})\n", "\n"]
    lines += ["| code | status | cause | cure |\n", "|---|---|---|---|\n"]
    for (code, status), kinds in sorted(kinds_by_code.items()):
        ordered = sorted(kinds, key=lambda kind: kind.__name__)
        causes = " ".join(dict.fromkeys(_first_sentence(kind) for kind in ordered))
        cures = dict.fromkeys(kind.cure or cure_of(code, status) for kind in ordered)
        lines.append(_row(f"`{code}`", str(status), causes, "; ".join(cures)))
    return "".join(lines)


def _operations(api: ApiPart) -> str:
    lines = [f"\n## {api.title}\n\n[Page of the API]({api.page})\n\n"]
    lines += ["| operation | signed by | parameters | effect |\n", "|---|---|---|---|\n"]
    for operation in operations_of(_app(api)):
        described = operation.described
        security = described.security
        levels = "" if security is None else " or ".join(security.levels)
        if security is not None and not security.is_required:
            levels += ", if at all"
        names = [*operation.path_parameters]
        names += [
            each.names[0] + ("*" if each.is_required else "")
            for each in described.parameters
            if each.is_documented
        ]
        about = inspect.cleandoc(operation.handler.fn.__doc__ or "").partition("\n\n")[0]
        route = f"`{operation.method} {operation.path}`"
        shown = ", ".join(f"`{name}`" for name in names)
        lines.append(_row(route, levels, shown, " ".join(about.split())))
    return "".join(lines)


def _artifacts() -> list[dict[str, Any]]:
    """Return the artifacts of the contracts that have an interface, by name."""
    found = [json.loads(path.read_text()) for path in sorted(ARTIFACTS.glob("*.json"))]
    return [artifact for artifact in found if artifact.get("abi")]


def _interface(artifact: dict[str, Any]) -> str:
    rows = sorted(
        (ORDER.index(entry["type"]), entry["name"], _entry(entry))
        for entry in artifact["abi"]
        if entry["type"] in ORDER
    )
    head = [f"\n## {artifact['name']}\n", "\n| kind | interface |\n", "|---|---|\n"]
    return "".join([*head, *(row for *_, row in rows)])


def _entry(entry: dict[str, Any]) -> str:
    given = ", ".join(_parameter(each) for each in entry.get("inputs", []))
    text = f"{entry['name']}({given})"
    if entry.get("outputs"):
        text += f" → ({', '.join(_parameter(each) for each in entry['outputs'])})"
    mutability = entry.get("stateMutability", "")
    kind = {"event": "log", "error": "error"}.get(entry["type"], "function")
    return _row(f"{kind}, {mutability}" if mutability in {"view", "pure"} else kind, f"`{text}`")


def _parameter(parameter: dict[str, Any]) -> str:
    kind = parameter["type"]
    if kind.startswith("tuple"):
        inner = ", ".join(_parameter(each) for each in parameter["components"])
        kind = f"({inner}){kind.removeprefix('tuple')}"
    star = "*" if parameter.get("indexed") else ""
    return f"{kind}{star} {parameter['name']}".strip()


@functools.cache
def _app(api: ApiPart) -> Litestar:
    app: Litestar = importlib.import_module(f"foretell.{api.routes}").build_app(None)
    return app


def _first_sentence(kind: Refusal) -> str:
    return " ".join(inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].split())


def _metrics() -> str:
    rows = sorted({row for path in sorted(SOURCE.rglob("*.py")) for row in _declared(path)})
    return "".join(["\n| metric | kind | labels | meaning |\n", "|---|---|---|---|\n", *rows])


def _declared(path: Path) -> Iterator[str]:
    """Yield the rows of the metrics that a module declares."""
    text = path.read_text()
    if '"foretell_' not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        kind = FAMILIES.get(node.func.id)
        if kind is None or not node.args:
            continue
        name, about, *rest = (ast.literal_eval(each) for each in node.args)
        named = [ast.literal_eval(each.value) for each in node.keywords if each.arg == "labels"]
        labels = ", ".join(f"`{label}`" for group in (*rest, *named) for label in group)
        suffix = "_total" if kind == "counter" else ""
        yield _row(f"`{name}{suffix}`", kind, labels, about)


def _settings() -> str:
    rows = [
        _row(f"`{name}`", _default(field), field.description or "")
        for name, field in sorted(Settings.model_fields.items())
    ]
    return "".join(["\n| setting | default | meaning |\n", "|---|---|---|\n", *rows])


def _default(field: FieldInfo) -> str:
    if "SecretStr" in str(field.annotation):
        return "none; a secret"
    value: Any = field.get_default(call_default_factory=True)
    if isinstance(value, SecretStr) or value is None or value in ({}, (), []):
        return "none"
    if isinstance(value, Path) and value.is_relative_to(CHECKOUT):
        value = value.relative_to(CHECKOUT)
    return f"`{value}`"


def _row(*cells: str) -> str:
    """Return a row of a table; a bar within a cell would end it."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    sys.exit(main())
