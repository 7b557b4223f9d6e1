"""`bench journal`, of both journals."""

import io
import os
import re
from pathlib import Path

import pytest
from rich.console import Console
from tests.rigs.in_process import Call
from tests.rigs.journals import PostgresJournals, query

from foretell.bench.journal import ALIGNMENT_BYTES, bare_file, run_bench_journal
from foretell.bench.postgres_journal import measure_postgres, run_bench_postgres_journal
from foretell.bench.rigs.batches import BatchPlan, Measured, ratio_words
from foretell.domain.errors.command import BenchFailed

ROUNDS = 2
PLAN = BatchPlan((1, 20), turns=3)
HOLDER = b"bench"
ROW = r"│ (\d+) +│ (\d+\.\d\d) +│ (\d+\.\d\d) +│ (\d+\.\d\d) +│ ([\d,]+) "


def printed_of_files() -> str:
    file = io.StringIO()
    run_bench_journal(ROUNDS, Console(file=file, width=200), PLAN)
    return file.getvalue()


def printed_of(url: str) -> str:
    file = io.StringIO()
    run_bench_postgres_journal(url, HOLDER, ROUNDS, Console(file=file, width=200), PLAN)
    return file.getvalue()


def check_rows(printed: str, name: str, bare: str) -> None:
    rows = re.findall(ROW, printed)
    assert [int(batch) for batch, *_ in rows] == [1, 1, 20, 20]
    assert min(float(ratio) for *_, ratio, _ in rows) > 0
    assert re.search(
        rf"^{name}: a batch takes (\d+\.\d\d) \(1 records\), (\d+\.\d\d) \(20 records\) times as"
        rf" long as {bare} of the same bytes \(medians of 2 rounds\)",
        printed,
        re.MULTILINE,
    )


def test_a_journal_in_files_is_printed_next_to_a_bare_sync() -> None:
    printed = printed_of_files()
    check_rows(printed, "journal", "one fdatasync")
    assert "cores of others" in printed


def test_the_bare_sync_writes_the_same_bytes_at_aligned_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "pwrite", lambda _, raw, at: places.append((len(raw), at)))
    with bare_file(tmp_path, 1, 3 * ALIGNMENT_BYTES) as bare:
        for _ in range(4):
            with pytest.raises(StopIteration):
                bare([bytes(260)]).__await__().__next__()
    assert places == [(260, 0), (260, 4096), (260, 8192), (260, 0)]


def test_a_journal_in_a_database_is_printed_next_to_a_bare_commit(journal_url: str) -> None:
    printed = printed_of(journal_url)
    check_rows(printed, "journal-postgres", "a bare commit")
    assert "cores of others" not in printed


def test_a_run_leaves_the_database_as_it_was(journal_url: str) -> None:
    printed_of(journal_url)
    ((is_there,),) = query(journal_url, "SELECT to_regnamespace('journal') IS NOT NULL")
    assert not is_there


@pytest.mark.anyio
async def test_a_database_with_a_journal_is_refused(journal_url: str) -> None:
    await PostgresJournals(journal_url).open("j").close()
    with pytest.raises(BenchFailed, match="the database has a journal"):
        await measure_postgres(journal_url, HOLDER, ROUNDS, PLAN)
    ((is_there,),) = query(journal_url, "SELECT to_regnamespace('journal') IS NOT NULL")
    assert is_there


def test_a_missing_database_ends_the_command(call: Call) -> None:
    called = call("bench", "journal", "--postgres", "postgresql+asyncpg://u@127.0.0.1:1/none")
    assert called.code == 1
    assert called.err.startswith("error: the database: ")


def test_a_ratio_is_a_batch_over_the_bare_way() -> None:
    measured = Measured(128, 2.0, 0.5)
    assert (measured.ratio, measured.records_per_s) == (4.0, 64_000)


def test_the_ratio_of_a_size_is_the_median_of_undisturbed_rounds() -> None:
    quiet = [Measured(16, ms, 1.0) for ms in (1.0, 2.0, 9.0)]
    assert ratio_words([*quiet, Measured(16, 50.0, 1.0, 0.5)]) == "2.00 (16 records)"
