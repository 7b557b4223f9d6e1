"""The table of `make cases`: its rows, and the marks of the tests."""

import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from tests.cases import cases, ruled_out
from tests.claims import MARKERS, Outcomes, report

GROUPS: Final = {"A": 11, "B": 14, "C": 16, "D": 15, "E": 6, "F": 11, "G": 9, "H": 5, "J": 7}
DECISION: Final = Path(__file__).parents[1] / "docs" / "decisions" / "0020-fault-cases-ruled-out.md"
CLAIM: Final = re.compile(r"\bpytest\.mark\.case\(([^)]+)\)")


def claimed() -> set[str]:
    """Return the cases that the tests of this tree are marked with."""
    folder = Path(__file__).parent
    claims = [claim for path in folder.rglob("*.py") for claim in CLAIM.findall(path.read_text())]
    return {case for claim in claims for case in re.findall(r'"([^"]+)"', claim)}


def test_the_table_has_every_case_of_every_group() -> None:
    rows = cases()
    assert Counter(row[0] for row in rows) == GROUPS
    assert all(row[2:] == f"{number:02}" for group in GROUPS for number, row in _numbered(group))


def _numbered(group: str) -> list[tuple[int, str]]:
    return list(enumerate([row for row in cases() if row[0] == group], 1))


def test_every_marked_case_is_in_the_table() -> None:
    assert claimed()
    assert claimed() - cases().keys() == set()


def test_every_case_has_a_test_unless_a_decision_rules_it_out() -> None:
    assert cases().keys() - claimed() == ruled_out() == {"B-09", "G-09", "J-06"}
    assert all(f"- **{case}, " in DECISION.read_text() for case in ruled_out())


def test_a_case_is_proven_only_if_all_its_tests_pass() -> None:
    outcomes = Outcomes("case")
    outcomes.tests_by_row["A-01"] = {"tests/a.py::one[1]": "passed", "tests/a.py::one[2]": "failed"}
    outcomes.tests_by_row["A-02"] = {"tests/a.py::two": "passed"}
    assert [outcomes.holds(row) for row in ("A-01", "A-02", "A-03")] == [False, True, False]
    assert outcomes.names("A-01") == ["tests/a.py::one"]
    assert not report(outcomes, cases(), ("case", "what must hold"))
    del outcomes.tests_by_row["A-01"]
    assert report(outcomes, cases(), ("case", "what must hold"))
    assert not report(outcomes, {}, ("case", "what must hold"))
    assert MARKERS == ("spec", "case")


def test_the_report_names_rows_that_are_ruled_out_apart_from_open_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = {"A-01": "holds", "A-02": "is open", "B-09": "Ruled out: nothing", "G-09": "has a test"}
    outcomes = Outcomes("case")
    outcomes.tests_by_row |= {"A-01": {"a.py::one": "passed"}, "G-09": {"a.py::two": "passed"}}
    assert report(outcomes, rows, ("case", "what must hold"), {"B-09", "G-09"})
    printed = capsys.readouterr().out
    assert "a.py::one" in printed
    assert "Ruled out: B-09\n" in printed
    assert "Open: A-02\n" in printed
