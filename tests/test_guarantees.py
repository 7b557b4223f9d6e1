"""The page of guarantees names tests and commands that exist."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest
from tests.fault_parts import BLOCK, PARTS, known_rows
from tests.runs.again import BLOCK as AGAIN

from foretell.bench.rigs.page import check_page

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = (ROOT / "docs" / "explanation" / "guarantees.md").read_text()
FIGURES: Final = "Figures"
"""The section that a command writes, and that has no tests of its own."""
FINDING: Final = re.compile(r"\bdef test_(?:attack_([hml]\d+)|(h4|p\d+))_")
"""A test that is named after a finding of an attack or an audit; other audits have numbers of their own."""
FINDINGS: Final = frozenset(
    {
        *(f"h{number}" for number in range(1, 6)),
        *(f"m{number}" for number in range(1, 6)),
        *(f"l{number}" for number in range(1, 12)),
        "p1",
    }
)
NAMED: Final = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


@pytest.mark.parametrize(("module", "name"), NAMED, ids=lambda part: part)
def test_a_named_test_exists(module: str, name: str) -> None:
    defined = {
        node.name
        for node in ast.walk(ast.parse((ROOT / module).read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert name in defined


def test_every_guarantee_names_its_tests() -> None:
    sections = PAGE.split("\n## ")[1:]
    counts = {each.partition("\n")[0]: len(re.findall(r"::test_", each)) for each in sections}
    assert counts.pop(FIGURES) == 0
    assert len(counts) == 8
    assert min(counts.values()) >= 5


def test_every_finding_of_an_attack_has_a_test_on_the_page() -> None:
    texts = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    assert findings_of("\n".join(texts)) == FINDINGS
    assert findings_of("\n".join(f"def {name}" for _, name in NAMED)) == FINDINGS


def findings_of(text: str) -> set[str]:
    """Return the findings after which the tests of a text are named."""
    return {attack or audit for attack, audit in FINDING.findall(text)}


@pytest.mark.parametrize("block", [BLOCK, AGAIN])
def test_the_page_has_a_place_for_the_figures_of_a_command(block: str) -> None:
    check_page(ROOT / "docs" / "explanation" / "guarantees.md", block)


def test_the_page_has_figures_of_faults() -> None:
    assert known_rows(PAGE)


def test_every_named_command_exists() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"^make (\w+)", PAGE, re.MULTILINE)) <= set(targets)
    parts = {part for given in re.findall(r"ONLY=([\w,]+)", PAGE) for part in given.split(",")}
    assert parts
    assert parts <= set(PARTS)
    commands = (ROOT / "src" / "foretell" / "cli" / "bench.py").read_text()
    named = set(re.findall(r"foretell bench (\w+)", PAGE))
    assert named
    assert all(f"def {name}(" in commands for name in named)
