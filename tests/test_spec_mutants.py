"""The patches of `make spec-mutants` fit this tree: they apply, and name tests of their rows."""

import re
from pathlib import Path

import pytest
from tests.spec_mutants import FOLDER, ROOT, Mutant, apply_problem, read_mutants

ROWS_MIN = 40
MUTANTS = read_mutants()


def test_the_patches_break_enough_rows() -> None:
    assert len({mutant.claim.row for mutant in MUTANTS}) >= ROWS_MIN


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.path.stem)
def test_a_patch_applies_and_its_test_file_marks_its_row(mutant: Mutant) -> None:
    assert apply_problem(mutant, ROOT, is_check=True) is None
    marks = re.findall(
        r"mark\.spec\(([\d, ]+)\)|\brow\((\d+),", (ROOT / mutant.claim.test_file).read_text()
    )
    rows = {int(row) for mark in marks for row in re.findall(r"\d+", ",".join(mark))}
    assert mutant.claim.row in rows


def test_a_patch_of_other_lines_is_noticed(tmp_path: Path) -> None:
    mutant = MUTANTS[0]
    other = tmp_path / "002-of-another-tree.patch"
    text = mutant.path.read_text()
    line = next(line for line in text.splitlines() if re.match("-[^-]", line))
    other.write_text(text.replace(line, f"{line} of another tree"))
    problem = apply_problem(mutant._replace(path=other), ROOT, is_check=True)
    assert problem is not None
    assert "patch does not apply" in problem


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("2-own-prefix.patch", "{}"),
        ("002-own-prefix.diff", "{}"),
        ("002-own-prefix.patch", "\n{}"),
        ("002-own-prefix.patch", "{}\n{}"),
        ("002-own-prefix.patch", "test: tests/edge/test_auth.py\n"),
    ],
)
def test_a_patch_of_another_form_is_refused(tmp_path: Path, name: str, text: str) -> None:
    patch = next(FOLDER.glob("002-*")).read_text()
    (tmp_path / name).write_text(text.replace("{}", patch))
    with pytest.raises(ValueError, match="must be named like"):
        read_mutants(tmp_path)
