"""The audit of the locked packages, and their bill of materials, which needs no network."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest

ROOT = Path(__file__).parents[1]
OFFLINE: Final[Mapping[str, str]] = {
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "npm_config_fetch_retries": "0",
}
"""A proxy at the port of the discard service, on which no program listens."""
DEADLINE_S: Final = 1_800.0
"""Only against a hang: the bills of materials take a busy machine minutes."""
NOTHING_AT_NPM = (
    "contracts/package-lock.json: 0 known vulnerabilities in 74 packages\n"
    "web/package-lock.json: 0 known vulnerabilities in 100 packages\n"
)
NO_ADVISORY = '{"auditReportVersion": 2, "vulnerabilities": {}}'

pytestmark = pytest.mark.xdist_group("audit")  # the bills of materials are made once


def audit(
    *arguments: str, tree: Path = ROOT, environment: Mapping[str, str] = MappingProxyType({})
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "requirements/audit.py", *arguments],
        cwd=tree,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def versions_of(bill: Path) -> set[tuple[str, str]]:
    """Return the names and versions of a bill of materials."""
    content = json.loads(bill.read_bytes())
    assert content["bomFormat"] == "CycloneDX"
    full_names = {
        (f"{each['group']}/{each['name']}" if "group" in each else each["name"], each["version"])
        for each in content["components"]
    }
    assert all(each["purl"].startswith("pkg:") for each in content["components"])
    return full_names


@pytest.fixture(scope="module")
def bills(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the bills of materials, written without a network."""
    folder = tmp_path_factory.mktemp("sbom")
    ran = audit("sbom", str(folder), environment=OFFLINE)
    assert ran.returncode == 0, ran.stderr
    return folder


NOT_SHIPPED: Final = frozenset(
    {
        *(f"requirements/{name}.txt" for name in ("audit", "dev", "docs", "generator", "node")),
        *(f"requirements/{name}.txt" for name in ("peers", "uv")),
        "tests/edge/generated/package-lock.json",
        "tests/ecosystem/npm/package-lock.json",
    }
)
"""Locks of what builds, measures and tests this project, and installs it."""


def locks() -> dict[str, Path]:
    """Return the lock files of this tree that are shipped, by their names within it."""
    found = [*(ROOT / "requirements").glob("*.txt"), *ROOT.glob("*/package-lock.json")]
    found += (ROOT / "tests").glob("*/*/package-lock.json")
    by_name = {str(path.relative_to(ROOT)): path for path in found}
    assert by_name.keys() >= NOT_SHIPPED
    return {name: path for name, path in by_name.items() if name not in NOT_SHIPPED}


BILLS: Final[Mapping[str, str]] = {
    "requirements/run.txt": "python.cdx.json",
    "requirements/parquet.txt": "python-parquet.cdx.json",
    "contracts/package-lock.json": "npm.cdx.json",
    "web/package-lock.json": "npm-web.cdx.json",
}
PYTHON_BILLS: Final = {lock: bill for lock, bill in BILLS.items() if lock.endswith(".txt")}
NPM_BILLS: Final = {lock: bill for lock, bill in BILLS.items() if lock.endswith(".json")}


def test_every_lock_of_what_is_shipped_has_a_bill_of_materials(bills: Path) -> None:
    """Those of the web app and of exports in Parquet had none."""
    assert locks().keys() == BILLS.keys()
    assert {each.name for each in bills.iterdir()} == set(BILLS.values())


@pytest.mark.parametrize(("lock", "bill"), PYTHON_BILLS.items())
def test_the_bill_of_materials_names_every_locked_python_package(
    bills: Path, lock: str, bill: str
) -> None:
    locked = set(re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE))
    assert locked
    assert locked <= versions_of(bills / bill)


@pytest.mark.parametrize(("lock", "bill"), PYTHON_BILLS.items())
def test_the_bill_of_materials_has_the_hashes_of_the_lock(
    bills: Path, lock: str, bill: str
) -> None:
    locked = set(re.findall(r"sha256:([0-9a-f]{64})", (ROOT / lock).read_text()))
    components = json.loads((bills / bill).read_bytes())["components"]
    hashes = {
        one["content"]
        for each in components
        for reference in each["externalReferences"]
        for one in reference["hashes"]
    }
    assert hashes == locked


@pytest.mark.parametrize(("lock", "bill"), NPM_BILLS.items())
def test_the_bill_of_materials_names_every_locked_npm_package(
    bills: Path, lock: str, bill: str
) -> None:
    locked = {
        (each.get("name", folder.rpartition("node_modules/")[2]), each["version"])
        for folder, each in json.loads((ROOT / lock).read_bytes())["packages"].items()
        if "node_modules/" in folder and not each.get("link")
    }
    assert len(locked) > 50
    assert locked <= versions_of(bills / bill)


def test_the_same_lock_gives_the_same_bill_of_materials(bills: Path, tmp_path: Path) -> None:
    assert audit("sbom", str(tmp_path), environment=OFFLINE).returncode == 0
    again = (tmp_path / "python.cdx.json").read_bytes()
    assert again == (bills / "python.cdx.json").read_bytes()


def test_without_a_network_the_audit_says_so_in_a_line_for_each_lock() -> None:
    ran = audit("vulnerabilities", environment=OFFLINE)
    assert (ran.returncode, ran.stdout) == (3, "")
    lines = [line.split(": ") for line in ran.stderr.splitlines()]
    assert {(line[0], line[1]) for line in lines} == {("not audited", lock) for lock in locks()}
    assert len(lines) == len(BILLS)
    assert "Traceback" not in ran.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with programs that stand in for the tools, which print what a test wrote for them."""
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    for lock in NPM_BILLS:
        (tmp_path / lock).parent.mkdir()
        shutil.copy(ROOT / lock, tmp_path / lock)
    tool = tmp_path / ".venv" / "audit" / "pip_audit"
    tool.mkdir(parents=True)
    program = "from pathlib import Path\nprint((Path(__file__).parent / 'prints').read_text())\n"
    (tool / "__main__.py").write_text(program)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir()
    for name, script in {
        "python": f'exec "{sys.executable}" "$@"',
        "npm": f'cat "{programs}/npm-prints"',
        "node": "",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    return tmp_path


def answers(tree: Path, python: Any, npm: str) -> "subprocess.CompletedProcess[str]":
    """Audit with these answers of the tools."""
    (tree / ".venv" / "audit" / "pip_audit" / "prints").write_text(json.dumps(python))
    programs = tree / ".venv" / "bin"
    (programs / "npm-prints").write_text(npm)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return audit("vulnerabilities", tree=tree, environment={"PATH": path})


def package(name: str, *vulnerabilities: str) -> dict[str, Any]:
    found = [{"id": each, "fix_versions": ["2.0"]} for each in vulnerabilities]
    return {"name": name, "version": "1.0", "vulns": found}


def test_a_registry_that_knows_no_package_is_not_an_audit_without_findings(tree: Path) -> None:
    """The tool itself ends well when its registry knows nothing."""
    skipped = {"name": "uvloop", "skip_reason": "Dependency not found on PyPI"}
    ran = answers(tree, {"dependencies": [package("rich"), skipped]}, NO_ADVISORY)
    assert ran.returncode == 3
    assert ran.stderr.count("knows nothing about 1 of 2 of them (uvloop, …)") == 2
    assert ran.stdout == NOTHING_AT_NPM


def test_packages_without_known_vulnerabilities_pass(tree: Path) -> None:
    ran = answers(tree, {"dependencies": [package("rich")]}, NO_ADVISORY)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (
        "requirements/run.txt: 0 known vulnerabilities in 1 packages\n"
        "requirements/parquet.txt: 0 known vulnerabilities in 1 packages\n"
        f"{NOTHING_AT_NPM}"
    )


def test_a_known_vulnerability_fails_the_audit_though_a_registry_is_silent(tree: Path) -> None:
    found = {"dependencies": [package("rich"), package("uvloop", "PYSEC-2026-1")]}
    ran = answers(tree, found, '{"message": "405 Method Not Allowed"}')
    assert ran.returncode == 1
    assert ran.stdout == "".join(
        f"requirements/{lock}.txt: uvloop 1.0: PYSEC-2026-1, fixed in 2.0\n"
        f"requirements/{lock}.txt: 1 known vulnerabilities in 2 packages\n"
        for lock in ("run", "parquet")
    )
    assert ran.stderr == (
        "not audited: contracts/package-lock.json: 405 Method Not Allowed\n"
        "not audited: web/package-lock.json: 405 Method Not Allowed\n"
    )


def test_a_known_vulnerability_of_a_package_from_npm_fails_the_audit(tree: Path) -> None:
    advisory = {"vulnerabilities": {"viem": {"range": "<0.8.9", "severity": "high"}}}
    ran = answers(tree, {"dependencies": [package("rich")]}, json.dumps(advisory))
    assert ran.returncode == 1
    assert "web/package-lock.json: viem <0.8.9: high\n" in ran.stdout
    assert "web/package-lock.json: 1 known vulnerabilities in" in ran.stdout


def test_a_tool_that_prints_nothing_is_named_in_a_line(tree: Path) -> None:
    ran = answers(tree, {"dependencies": [package("rich")]}, "")
    assert ran.returncode == 3
    assert ran.stderr.splitlines() == [
        f"not audited: {lock}: npm printed nothing" for lock in NPM_BILLS
    ]


@pytest.mark.parametrize("arguments", [(), ("sbom",), ("all",)])
def test_a_wrong_use_prints_the_right_one(arguments: tuple[str, ...]) -> None:
    ran = audit(*arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("usage: requirements/audit.py")
