"""Every external function says what it does, what each parameter is, and what it returns."""

import json
import re
import runpy
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.contracts.evm import ROOT, own_artifact_fields
from tests.contracts.faulty.compiling import compiled

SOURCES = ROOT / "contracts" / "src"
CONTRACTS = sorted(path.stem for path in SOURCES.glob("*.vy"))
GETTERS_ALONE = frozenset({"DepositWalletBeacon"})
"""Contracts whose functions are those of public variables."""
GETTER = re.compile(r"^(\w+): public\(", re.MULTILINE)

BUILD = runpy.run_path(str(ROOT / "contracts" / "build.py"))


class Documents(NamedTuple):
    """What the compiler found in the comments of a source, by function: a name has one in Vyper."""

    title: str
    notice: str
    notices: Mapping[str, str]
    details: Mapping[str, Mapping[str, Any]]


@cache
def documents() -> dict[str, Documents]:
    """Return the documentation of each source by its path."""
    command = [sys.executable, "-m", "vyper", "--evm-version", "cancun", "--disable-sys-path"]
    command += ["-p", str(SOURCES), "-f", "userdoc,devdoc"]
    paths = sorted(map(str, SOURCES.rglob("*.vy")))
    done = compiled([*command, *paths])
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        path: Documents(
            dev.get("title", ""),
            user.get("notice", ""),
            {bare(each): doc["notice"] for each, doc in user.get("methods", {}).items()},
            {bare(each): doc for each, doc in dev.get("methods", {}).items()},
        )
        for path, user, dev in zip(paths, lines[::2], lines[1::2], strict=True)
    }


def bare(function: str) -> str:
    """Return the name in a signature."""
    return function.partition("(")[0]


def kind(parameter: Mapping[str, Any]) -> str:
    declared = str(parameter["type"])
    if not declared.startswith("tuple"):
        return declared
    return f"({','.join(map(kind, parameter['components']))}){declared.removeprefix('tuple')}"


def signature(entry: Mapping[str, Any]) -> str:
    return f"{entry['name']}({','.join(map(kind, entry['inputs']))})"


def sources_of(name: str) -> list[Path]:
    """Return the sources of a contract: its own, and those of its modules."""
    found: list[Path] = BUILD["_closure"](SOURCES / f"{name}.vy")
    return found


@cache
def functions(name: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the functions that the sources of a contract spell out, by signature."""
    abi = own_artifact_fields(name)["abi"]
    texts = [path.read_text() for path in sources_of(name)]
    getters = {getter for text in texts for getter in GETTER.findall(text)}
    raw = {signature(entry) for entry in BUILD["_raw_functions"](texts, abi)}
    return {
        signature(entry): entry
        for entry in abi
        if entry["type"] == "function"
        if entry["name"] not in getters
        if signature(entry) not in raw
    }


def gaps(entry: Mapping[str, Any], found: Documents) -> Iterator[str]:
    """Yield the parts of a function's documentation that are missing."""
    details = found.details.get(entry["name"], {})
    if entry["name"] not in found.notices:
        yield "@notice"
    for parameter in entry["inputs"]:
        if parameter["name"] not in details.get("params", {}):
            yield f"@param {parameter['name']}"
    if entry["outputs"] and not details.get("returns"):
        yield "@return"


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_external_function_is_documented(name: str) -> None:
    merged = Documents("", "", {}, {})
    for path in sources_of(name):
        found = documents()[str(path)]
        merged = Documents(
            "", "", {**merged.notices, **found.notices}, {**merged.details, **found.details}
        )
    missing = [
        f"{each}: {gap}" for each, entry in functions(name).items() for gap in gaps(entry, merged)
    ]
    assert "\n".join(missing) == ""
    assert functions(name) or name in GETTERS_ALONE


def test_every_source_has_a_title_and_a_notice() -> None:
    assert [path for path, found in documents().items() if not (found.title and found.notice)] == []


def test_functions_that_are_decoded_by_hand_are_named_in_a_notice() -> None:
    for name in CONTRACTS:
        abi = own_artifact_fields(name)["abi"]
        texts = [path.read_text() for path in sources_of(name)]
        notice = documents()[str(SOURCES / f"{name}.vy")].notices.get("__default__", "")
        assert all(entry["name"] in notice for entry in BUILD["_raw_functions"](texts, abi))


RAW = re.compile(r"((?:^# @.*\n)*)^# abi: function (\w+)\((.*)\)$", re.MULTILINE)


def raw_gaps(text: str) -> list[str]:
    """Return what is missing above the calls that a source decodes by hand."""
    return [
        f"{name}: {tag}"
        for lines, name, inputs in RAW.findall(text)
        for tag in ("@notice", *(f"@param {each.split(' ')[1]}" for each in inputs.split(", ")))
        if f"# {tag} " not in lines
    ]


def test_functions_that_are_decoded_by_hand_are_documented_where_they_are_declared() -> None:
    texts = [path.read_text() for path in SOURCES.rglob("*.vy")]
    assert sum(len(RAW.findall(text)) for text in texts) == sum(
        text.count("# abi: function ") for text in texts
    )
    assert [gap for text in texts for gap in raw_gaps(text)] == []
    bare_call = "# @notice It.\n# abi: function call(bytes data)\n"
    assert raw_gaps(bare_call) == ["call: @param data"]


def test_a_function_without_documentation_is_found() -> None:
    entry = functions("Exchange")["setFeeReceiver(address)"]
    empty = Documents("", "", {}, {})
    assert list(gaps(entry, empty)) == ["@notice", "@param receiver"]
    assert list(gaps(functions("Exchange")["feeRateBpsMax()"], empty)) == ["@notice", "@return"]
