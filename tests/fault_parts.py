"""`make faults`: kills, damages, lies and attacks in parts, each of which runs whatever became of the others.

Prints how often each fault was played, and writes it into a page: `make faults WRITE=PAGE.md`. The counts are
those of the tests themselves: `played` in the report of a test that repeats a fault, or else one for each of its
parameters. A row says what the tests look for after each of them; if a test fails, the row says that instead.
"""

import argparse
import datetime as dt
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

from foretell.bench.rigs.machine import machine_words
from foretell.bench.rigs.page import check_page, write_block

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = "tests/faults"
BLOCK: Final = "make faults"
PLAYED: Final = "played"
COLUMNS: Final = ("fault", "played", "what was looked for", "found", "day and machine")
HEAD: Final = (
    "How often each fault was played in the last run that had it. Each count is of tests that look for all that"
    " its row names, after every one. The last run played the parts"
)


class Part(NamedTuple):
    """Tests that run together, on so many workers; with none, they run alone."""

    paths: tuple[str, ...]
    workers: int = 2


class Figure(NamedTuple):
    """A kind of fault: the tests of a module that play it, and what they look for after each."""

    fault: str
    module: str
    looked_for: str
    tests: tuple[str, ...] = ()
    """All tests of the module, if it is empty."""


ATTACKS: Final = f"{FOLDER}/test_attacks.py"
ENGINES: Final = f"{FOLDER}/test_engines.py"
EXCHANGE: Final = f"{FOLDER}/test_exchange.py"
JOURNAL: Final = f"{FOLDER}/test_journal.py"
LEASES: Final = f"{FOLDER}/test_leases.py"
NODES: Final = f"{FOLDER}/nodes"
LYING_NODE: Final = f"{NODES}/test_lying_node.py"
VANISHED: Final = f"{NODES}/test_vanished_sends.py"
MIGRATIONS: Final = "tests/store/test_killed_migrations.py"
PATRONI: Final = f"{FOLDER}/test_patroni.py"
RANKINGS: Final = "tests/store/index/rankings/test_rankings.py"
REQUESTS: Final = "tests/edge/documents/test_random_requests.py"
HISTORIES: Final = "tests/reconciliation/test_verify.py"


def kill_modules() -> tuple[str, ...]:
    """Return the modules of the faults' folder that belong to no other part."""
    found = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / FOLDER).glob("test_*.py"))
    return tuple(path for path in found if path not in {ATTACKS, PATRONI})


PARTS: Final = {
    "kills": Part((*kill_modules(), MIGRATIONS)),
    "lies": Part((NODES,)),
    "histories": Part((RANKINGS, "tests/reconciliation")),
    "requests": Part((REQUESTS,)),
    "patroni": Part((PATRONI,), workers=0),
    "attacks": Part((ATTACKS,), workers=0),
}

LOST_OR_DOUBLED: Final = (
    "lost or doubled orders, cancels and trades; tables that differ from the journal"
)
LOST_RECORDS: Final = "lost or doubled records, gaps"
FIGURES: Final = (
    Figure(
        "kills of a server that traders use over HTTP",
        EXCHANGE,
        LOST_OR_DOUBLED,
        ("test_an_exchange_that_is_killed_repeatedly_under_load_loses_and_doubles_nothing",),
    ),
    Figure(
        "ends before, at and after the sync of an order, a cancel or a trade",
        EXCHANGE,
        LOST_OR_DOUBLED,
        (
            "test_an_order_whose_answer_was_never_sent_is_placed_once",
            "test_a_cancel_whose_answer_was_never_sent_holds_and_is_done_once",
            "test_a_trade_whose_answer_was_never_sent_happens_once",
        ),
    ),
    Figure("stops of a leading engine under traders", ENGINES, LOST_OR_DOUBLED),
    Figure(
        "kills of the leader of a shard",
        LEASES,
        LOST_RECORDS,
        ("test_another_leads_soon_after_a_leader_was_killed_and_nothing_is_lost",),
    ),
    Figure(
        "kills of a process that writes a journal and its snapshots",
        JOURNAL,
        "lost or doubled orders",
        ("test_a_trader_that_is_killed_repeatedly_loses_and_doubles_nothing",),
    ),
    Figure(
        "damages of journals and snapshots",
        JOURNAL,
        "starts with another state; damages that are not named",
        ("test_damage_anywhere_stops_the_start_or_changes_nothing",),
    ),
    Figure(
        "kills of a migration",
        MIGRATIONS,
        "databases that the next start does not complete, lost rows",
    ),
    Figure(
        "seeds of a node that lies to settlement, relayer, creation or indexer",
        LYING_NODE,
        "doubled transactions, gaps of nonces, queues that take over a minute to drain, wrong rows",
    ),
    Figure(
        "ten minutes, by the loops' clock, in which each transaction that is sent vanishes",
        VANISHED,
        "doubled transactions, gaps of nonces, queues that take over a minute to drain",
    ),
    Figure(
        "random histories of a chain, on SQLite, and each nineteenth on PostgreSQL, too",
        HISTORIES,
        "rows that differ from a slow computation from the logs",
        ("test_after_a_random_history_every_row_is_what_the_chain_says",),
    ),
    Figure(
        "random histories of the standings",
        RANKINGS,
        "standings that differ from a slow computation",
        ("test_the_standings_equal_a_slow_computation_from_all_history",),
    ),
    Figure(
        "generated requests to all APIs",
        REQUESTS,
        "answers of status 5xx; statuses, headers and bodies that are not documented",
    ),
    Figure("kills and stops of the primary of a Patroni cluster", PATRONI, LOST_RECORDS),
    Figure(
        "attacks of strangers beside a trader",
        ATTACKS,
        "orders without an answer, memory above 1.2 times that of before, answers of status 500;"
        " where no other program ran, a p99 above twice that of before, and 5 ms",
        ("test_beside_each_attack_orders_go_on_and_memory_is_given_back",),
    ),
)


class Ended(NamedTuple):
    """One test of a report: its module, its name without parameters, whether it passed, and its count."""

    module: str
    name: str
    has_passed: bool
    played: int


def read_report(report: Path) -> list[Ended]:
    """Return the tests of a report in JUnit's format, without those that were skipped."""
    found = []
    for case in ET.parse(report).iter("testcase"):
        if case.find("skipped") is not None:
            continue
        module = case.get("classname", "").replace(".", "/") + ".py"
        counts = [
            int(each.get("value", ""))
            for each in case.iter("property")
            if each.get("name") == PLAYED
        ]
        has_passed = case.find("failure") is None and case.find("error") is None
        name = re.split(r"[\[@]", case.get("name", ""))[0]  # without parameters and group
        found.append(Ended(module, name, has_passed, sum(counts) if counts else 1))
    return found


def rows_of(ended: Sequence[Ended], occasion: str) -> dict[str, str]:
    """Return the row of each fault that was played, by its words."""
    rows = {}
    for figure in FIGURES:
        theirs = [
            each
            for each in ended
            if each.module == figure.module and each.name in (figure.tests or {each.name})
        ]
        if theirs:
            failed = sorted({each.name for each in theirs if not each.has_passed})
            played = sum(each.played for each in theirs if each.has_passed)
            found = f"**failed: {', '.join(failed)}**" if failed else "0"
            cells = (figure.fault, f"{played:,}", figure.looked_for, found, occasion)
            rows[figure.fault] = f"| {' | '.join(cells)} |"
    return rows


def known_rows(page: str) -> dict[str, str]:
    """Return the rows of a page by the words of their fault."""
    faults = {figure.fault for figure in FIGURES}
    rows = re.findall(r"^(\| ([^|]+) \|.*)$", page, re.MULTILINE)
    return {fault: row for row, fault in rows if fault in faults}


def table_of(rows: Mapping[str, str]) -> list[str]:
    """Return the lines of the table."""
    heads = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    return [*heads, *(rows[each.fault] for each in FIGURES if each.fault in rows), ""]


def play(part: Part, report: Path) -> int:
    """Run the tests of a part, and return their exit code."""
    workers = ["-n", str(part.workers), "--dist", "loadgroup"]
    command = [sys.executable, "-m", "pytest", *workers, "--durations=20", f"--junitxml={report}"]
    return subprocess.run([*command, *part.paths], cwd=ROOT, check=False).returncode


def head_of(parts: Iterable[str], ended: Iterable[Ended], failed: Iterable[str]) -> str:
    """Return what stands above the table: the parts of a run, and every test or part that failed in it."""
    tests = sorted({each.name for each in ended if not each.has_passed})
    names = ", ".join([*tests, *(f"the part {part}" for part in failed)])
    return f"{HEAD} {', '.join(parts)}. Failed: {names or 'none'}."


def main(parts: Mapping[str, Part], page: Path | None) -> int:
    """Play parts, print and write the table, and return 1 if one of them failed."""
    if page is not None:
        check_page(page, BLOCK)
    ended: list[Ended] = []
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for name, part in parts.items():
            report = Path(folder) / f"{name}.xml"
            if play(part, report):
                failed.append(name)
            ended += read_report(report) if report.exists() else []
    rows = rows_of(ended, f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, {machine_words()}")
    sys.stdout.write("\n".join(table_of(rows)))
    sys.stdout.write(f"Failed parts: {', '.join(failed) or 'none'}\n")
    if page is not None:
        head = head_of(parts, ended, failed)
        write_block(page, BLOCK, head, table_of(known_rows(page.read_text()) | rows))
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    unknown = set(given.only) - PARTS.keys()
    if unknown:
        parser.error(f"there are no parts {sorted(unknown)}: choose among {', '.join(PARTS)}")
    sys.exit(main({name: PARTS[name] for name in given.only}, given.write))
