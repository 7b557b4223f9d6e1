"""The parts of `make faults`, and the table that they write."""

import ast
from pathlib import Path

import pytest
from tests.fault_parts import (
    BLOCK,
    EXCHANGE,
    FIGURES,
    LYING_NODE,
    PARTS,
    PATRONI,
    ROOT,
    Ended,
    Figure,
    Part,
    known_rows,
    main,
    read_report,
    rows_of,
    table_of,
)

REPORT = """<testsuites><testsuite>
<testcase classname="tests.faults.test_exchange" name="{killed}@faults">
<properties><property name="case" value="A-01" /><property name="played" value="200" /></properties></testcase>
<testcase classname="tests.faults.nodes.test_lying_node" name="test_one[1]" />
<testcase classname="tests.faults.nodes.test_lying_node" name="test_one[2]"><failure /></testcase>
<testcase classname="tests.faults.test_patroni" name="test_a"><skipped /></testcase>
</testsuite></testsuites>"""
KILLED = FIGURES[0].tests[0]


def report_at(folder: Path) -> Path:
    path = folder / "report.xml"
    path.write_text(REPORT.format(killed=KILLED))
    return path


def test_every_module_of_faults_is_in_one_part() -> None:
    modules = [
        path.relative_to(ROOT).as_posix() for path in (ROOT / "tests/faults").glob("test_*.py")
    ]
    played = [path for part in PARTS.values() for path in part.paths]
    assert sorted(path for path in played if path in modules) == sorted(modules)
    assert all((ROOT / path).exists() for path in played)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.fault)
def test_the_tests_of_a_figure_exist(figure: Figure) -> None:
    tree = ast.parse((ROOT / figure.module).read_bytes())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    defined = {node.name for node in ast.walk(tree) if isinstance(node, functions)}
    assert set(figure.tests) <= defined


def test_counts_are_those_that_tests_report_or_one_each(tmp_path: Path) -> None:
    assert read_report(report_at(tmp_path)) == [
        Ended(EXCHANGE, KILLED, has_passed=True, played=200),
        Ended(LYING_NODE, "test_one", has_passed=True, played=1),
        Ended(LYING_NODE, "test_one", has_passed=False, played=1),
    ]


def test_a_row_names_what_failed(tmp_path: Path) -> None:
    rows = rows_of(read_report(report_at(tmp_path)), "today")
    killed, lied = rows.values()
    assert killed.endswith("| 0 | today |")
    assert " | 200 | " in killed
    assert "| 1 |" in lied
    assert lied.endswith("| **failed: test_one** | today |")


def test_faults_that_were_not_played_keep_their_rows(tmp_path: Path) -> None:
    rows = rows_of(read_report(report_at(tmp_path)), "today")
    page = "\n".join(table_of(rows))
    later = rows_of([Ended(PATRONI, "test_a", has_passed=True, played=4)], "tomorrow")
    table = table_of(known_rows(page) | later)
    assert [line.split(" | ")[1] for line in table[2:-1]] == ["200", "1", "4"]


def test_a_part_that_fails_hides_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, test = tmp_path / "page.md", tmp_path / "test_it.py"
    page.write_text(f"<!-- {BLOCK}: begin -->\n<!-- {BLOCK}: end -->\n")
    test.write_text("def test_it(tmp_path):\n    assert tmp_path.exists()\n")
    parts = {
        "missing": Part((str(tmp_path / "test_no.py"),), 0),
        "whole": Part((str(test),), 0),
    }
    assert main(parts, page) == 1
    assert "Failed parts: missing\n" in capsys.readouterr().out
    assert "parts missing, whole. Failed: the part missing." in page.read_text().replace("\n", " ")
