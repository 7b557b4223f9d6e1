"""Every deviation of tests/deviations.md has a test with its number, and no test another number."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
NUMBERS = [
    int(number)
    for number in re.findall(
        r"^\| (\d+) \| .+ \|$", (TESTS / "deviations.md").read_text(), flags=re.MULTILINE
    )
]


def numbers_of(test: ast.FunctionDef | ast.AsyncFunctionDef) -> list[int]:
    """Return the numbers in a test's markers; raises for one that is no plain number."""
    marks = [
        each
        for each in test.decorator_list
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "pytest.mark.deviation"
    ]
    return [ast.literal_eval(number) for mark in marks for number in mark.args]


@pytest.fixture(scope="module")
def tests_by_number() -> dict[int, list[str]]:
    """The tests with the marker, by the number in it."""
    found = defaultdict(list)
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text()
        if "mark.deviation(" not in text or path.samefile(__file__):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for number in numbers_of(node):
                    found[number].append(f"{path.relative_to(TESTS)}::{node.name}")
    return found


def test_the_deviations_are_numbered_without_a_gap() -> None:
    assert list(range(1, 26)) == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_a_deviation_has_a_test(number: int, tests_by_number: dict[int, list[str]]) -> None:
    tests = tests_by_number.get(number, [])
    assert tests
    assert all(name.partition("::")[2].startswith("test_") for name in tests)


def test_no_test_has_a_number_that_is_none(tests_by_number: dict[int, list[str]]) -> None:
    assert set(tests_by_number) <= set(NUMBERS)
