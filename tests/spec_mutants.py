"""`make spec-mutants`: breaks statements of the checklist one by one, and expects their tests to fail.

Each patch in tests/mutants breaks one row of docs/reference/checklist.md in a copy of this tree. Its file
is named `<row>-<what it breaks>.patch`; its first line names the test file, such as
`test: tests/creation/requests/test_challenge.py`. Of that file the tests marked with the row run, and one
of them must fail in its own body: an error at import, at collection or in a fixture proves nothing.
Before that the same tests must pass in a copy without a patch.

    make spec-mutants              every patch
    make spec-mutants ROWS=41,42   the patches of some rows
"""

import argparse
import asyncio
import contextlib
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from rich.console import Console
from rich.table import Table

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "tests" / "mutants"
PARALLEL: Final = 2
UNMUTATED_GROUPS: Final = 4
"""The test files without a patch are run in so many processes."""
UNMUTATED_DEADLINE_S: Final = 400.0
MUTANT_DEADLINE_S: Final = 180.0
OUTPUT_BYTES_MAX: Final = 64 * 1024
OUTPUT_LINES_SHOWN: Final = 15

_ENDS: Final = frozenset(
    {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}
)
"""The ends of pytest after which the outcomes count."""

_NAME: Final = re.compile(r"(\d{3})-[a-z0-9-]+\.patch\Z")
_TEST: Final = re.compile(r"test: (tests/\S+\.py)\n")
_TARGET: Final = re.compile(r"^\+\+\+ b/(src/foretell/\S+\.py)$", flags=re.MULTILINE)


class Claim(NamedTuple):
    """A row, and a file with tests that prove it."""

    row: int
    test_file: str


class Mutant(NamedTuple):
    """A patch of a product file, and the claim that it must refute."""

    path: Path
    claim: Claim
    target: str


def read_mutants(folder: Path = FOLDER) -> list[Mutant]:
    """Return the mutants of a folder by row; raises ValueError for a patch of another form."""
    return [_read_mutant(path) for path in sorted(folder.iterdir())]


def _read_mutant(path: Path) -> Mutant:
    text = path.read_text()
    name, test, targets = _NAME.match(path.name), _TEST.match(text), _TARGET.findall(text)
    if name is None or test is None or len(targets) != 1:
        raise ValueError(
            f"{path.name} must be named like 039-longer-lifetime.patch, begin with a line"
            " such as test: tests/creation/test_render.py, and change one file of src/foretell"
        )
    return Mutant(path, Claim(int(name[1]), test[1]), targets[0])


def apply_problem(mutant: Mutant, tree: Path, *, is_check: bool) -> str | None:
    """Apply a patch to a tree, or only check it; return why it does not apply, or None."""
    before = (tree / mutant.target).read_bytes()
    done = subprocess.run(
        ["git", "apply", *(["--check"] if is_check else []), str(mutant.path)],
        cwd=tree,
        env=os.environ | {"GIT_CEILING_DIRECTORIES": str(tree.parent)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        return done.stderr.strip()
    is_same = (tree / mutant.target).read_bytes() == before
    return None if is_check or not is_same else "the patch changes nothing"


# The parent: copies, processes and the table.


class Run(NamedTuple):
    """The outcomes of a process by row and test, and the end of its output."""

    outcomes: dict[int, dict[str, str]]
    output: str
    ended: str | None
    """Why there are no outcomes, None if there are."""


class Verdict(NamedTuple):
    """The result of one mutant."""

    mutant: Mutant
    words: str
    seconds: float
    output: str = ""

    @property
    def is_caught(self) -> bool:
        """Whether a marked test failed."""
        return self.words == "caught"


@contextlib.contextmanager
def a_copy() -> Iterator[Path]:
    """Yield a copy of all that tests need, with its own folder for their files."""
    with tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "tree"
        for name in ("src", "tests", "docs", "contracts"):
            shutil.copytree(
                ROOT / name,
                copy / name,
                symlinks=True,
                ignore=shutil.ignore_patterns("node_modules"),
            )
        (copy / "contracts" / "node_modules").symlink_to(ROOT / "contracts" / "node_modules")
        shutil.copy2(ROOT / "pyproject.toml", copy)
        (Path(folder) / "t").mkdir()
        yield copy


async def run_in(tree: Path, claims: Iterable[Claim], deadline_s: float, *more: str) -> Run:
    """Run the marked tests of claims in a copy, in a process that ends with its deadline."""
    report = tree.parent / "report.json"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "tests/run.py",
        "spec_mutants",
        "--prove",
        str(report),
        *more,
        *(f"{row}:{file}" for row, file in claims),
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree / "src"), "TMPDIR": str(tree.parent / "t")},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    tail = bytearray()
    ended: str | None = None
    try:
        async with asyncio.timeout(deadline_s):
            assert process.stdout is not None
            while chunk := await process.stdout.read(OUTPUT_BYTES_MAX):
                tail += chunk
                del tail[:-OUTPUT_BYTES_MAX]
            await process.wait()
    except TimeoutError:
        ended = f"ran longer than {deadline_s:.0f} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if ended is None and not report.exists():
        ended = f"ended with {process.returncode} before its tests"
    outcomes = {} if ended else json.loads(report.read_text())
    return Run(
        {int(row): tests for row, tests in outcomes.items()},
        "\n".join(tail.decode(errors="replace").splitlines()[-OUTPUT_LINES_SHOWN:]),
        ended,
    )


async def unmutated_problems(claims: Sequence[Claim]) -> list[str]:
    """Return the claims that do not hold in a copy without a patch."""
    files = sorted({claim.test_file for claim in claims})
    places = asyncio.Semaphore(PARALLEL)
    problems = []

    async def run(group: Sequence[str]) -> None:
        wanted = [claim for claim in claims if claim.test_file in group]
        async with places:
            with a_copy() as tree:
                done = await run_in(tree, wanted, UNMUTATED_DEADLINE_S)
        if done.ended is not None:
            problems.append(f"{done.ended}\n{done.output}")
            return
        for row, file in wanted:
            tests = done.outcomes.get(row, {})
            own = {test: end for test, end in tests.items() if test.split("::")[0] == file}
            if set(own.values()) != {"passed"}:
                problems.append(f"row {row} in {file}: {own or 'no test'}\n{done.output}")

    groups = min(UNMUTATED_GROUPS, len(files))
    await asyncio.gather(*(run(files[at::groups]) for at in range(groups)))
    return problems


async def verdict_of(mutant: Mutant) -> Verdict:
    """Return whether a marked test fails when the patch is applied."""
    started_s = time.monotonic()
    with a_copy() as tree:
        problem = apply_problem(mutant, tree, is_check=False)
        if problem is not None:
            return Verdict(mutant, "DOES NOT APPLY", 0, problem)
        module = ".".join(Path(mutant.target).with_suffix("").parts[1:])
        done = await run_in(tree, [mutant.claim], MUTANT_DEADLINE_S, "--mutated", module)
    took_s = time.monotonic() - started_s
    ends = set(done.outcomes.get(mutant.claim.row, {}).values())
    if done.ended is not None:
        return Verdict(mutant, f"SURVIVED: {done.ended}", took_s, done.output)
    if "failed" in ends:
        return Verdict(mutant, "caught", took_s)
    words = "SURVIVED: errors outside the tests" if "error" in ends else "SURVIVED"
    return Verdict(mutant, words, took_s, done.output)


async def judge(mutants: Sequence[Mutant], console: Console) -> int:
    """Run all mutants, print the table, and return 0 when every one is caught."""
    console.print(f"{len(mutants)} mutants; first their tests without a patch")
    problems = await unmutated_problems(sorted({mutant.claim for mutant in mutants}))
    for problem in problems:
        console.print(f"FAILS WITHOUT A PATCH: {problem}", markup=False)
    if problems:
        return 1
    places = asyncio.Semaphore(PARALLEL)

    async def one(mutant: Mutant) -> Verdict:
        async with places:
            verdict = await verdict_of(mutant)
        name, words = verdict.mutant.path.name, verdict.words
        console.print(f"{name}: {words} in {verdict.seconds:.1f} s", markup=False, highlight=False)
        return verdict

    verdicts = await asyncio.gather(*map(one, mutants))
    table = Table("row", "mutant", "test file", "verdict", "s")
    for mutant, words, seconds, _ in verdicts:
        row, file = mutant.claim
        table.add_row(str(row), mutant.path.stem[4:], file[6:], words, f"{seconds:.1f}")
    console.print(table)
    survivors = [verdict for verdict in verdicts if not verdict.is_caught]
    for verdict in survivors:
        console.print(
            f"{verdict.mutant.path.name}: {verdict.words}\n{verdict.output}", markup=False
        )
    rows = {verdict.mutant.claim.row for verdict in verdicts if verdict.is_caught}
    console.print(
        f"{len(verdicts) - len(survivors)} of {len(verdicts)} caught, of {len(rows)} rows"
    )
    return 1 if survivors else 0


# The child: the marked tests of one copy.


class MarkedTests:
    """Runs the tests of the claims alone, and notes how each of them ends."""

    def __init__(self, claims: Sequence[Claim], mutated: str | None, report: Path) -> None:
        self._report = report
        self._claims = claims
        self._mutated = mutated
        self._rows_by_test: dict[str, set[int]] = {}
        self._session: pytest.Session | None = None
        self.outcomes: dict[int, dict[str, str]] = {claim.row: {} for claim in claims}

    def pytest_sessionstart(self) -> None:
        """End the process when the mutated module cannot be imported: no test judges that."""
        module = importlib.import_module(self._mutated or "foretell")
        assert Path(str(module.__file__)).is_relative_to(ROOT), "this is another copy's code"

    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        self._session = session
        for item in items:
            marked = {row for mark in item.iter_markers("spec") for row in mark.args}
            file = item.nodeid.split("::")[0]
            self._rows_by_test[item.nodeid] = {
                row for row, test_file in self._claims if row in marked and test_file == file
            }
        chosen = [item for item in items if self._rows_by_test[item.nodeid]]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        outcome = report.outcome if report.when == "call" else "error"
        for row in self._rows_by_test[report.nodeid]:
            known = self.outcomes[row].get(report.nodeid)
            self.outcomes[row][report.nodeid] = "failed" if known == "failed" else outcome
        if outcome == "failed" and self._mutated and self._session is not None:
            self._session.shouldstop = "a test has failed"

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the outcomes, none after a failed import."""
        if exitstatus in _ENDS:
            self._report.write_text(json.dumps(self.outcomes))


def prove(report: Path, claims: Sequence[Claim], mutated: str | None) -> int:
    """Run the tests of claims in this copy, and have their outcomes written."""
    marked = MarkedTests(claims, mutated, report)
    files = sorted({claim.test_file for claim in claims})
    unused = ["-p", "no:cacheprovider", "-p", "no:faker"]
    options = ["-q", *unused, "--tb=short", "--show-capture=no"]
    return int(pytest.main([*options, *files], [marked]))


def main() -> int:
    """Judge the patches, or run the tests of one copy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="", help="rows separated by commas, by default all")
    parser.add_argument("--prove", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--mutated", help=argparse.SUPPRESS)
    parser.add_argument("claims", nargs="*", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.prove is not None:
        pairs = [claim.split(":", 1) for claim in wanted.claims]
        claims = [Claim(int(row), file) for row, file in pairs]
        return prove(wanted.prove, claims, wanted.mutated)
    rows = {int(row) for row in wanted.rows.split(",") if row}
    mutants = [each for each in read_mutants() if not rows or each.claim.row in rows]
    return asyncio.run(judge(mutants, Console(width=140)))


if __name__ == "__main__":
    sys.exit(main())
