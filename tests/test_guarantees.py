"""The page of guarantees names tests and commands that exist."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = (ROOT / "docs" / "explanation" / "guarantees.md").read_text()
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
    assert len(counts) == 7
    assert min(counts.values()) >= 5


def test_every_named_command_exists() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"^make (\w+)", PAGE, re.MULTILINE)) <= set(targets)
    commands = (ROOT / "src" / "foretell" / "cli" / "bench.py").read_text()
    named = set(re.findall(r"foretell bench (\w+)", PAGE))
    assert named
    assert all(f"def {name}(" in commands for name in named)
