import io
import re

import pytest
from rich.console import Console
from tests.journal.shards import Shards, query

from foretell.cli.bench import postgres_journal
from foretell.cli.bench.postgres_journal import Measured, run_bench_postgres_journal
from foretell.domain.command_errors import BenchFailed

ROUNDS = 3
HOLDER = b"bench"


def printed(url: str) -> str:
    file = io.StringIO()
    run_bench_postgres_journal(url, HOLDER, ROUNDS, Console(file=file, width=200))
    return file.getvalue()


def test_a_run_prints_each_batch_beside_a_bare_commit(
    journal_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_journal, "BATCHES", (1, 20))
    told = printed(journal_url)
    rows = re.findall(r"│ (\d+) +│ (\d+\.\d\d) +│ (\d+\.\d\d) +│ (\d+\.\d\d) +│ ([\d,]+) ", told)
    assert [int(batch) for batch, *_ in rows] == [1, 20]
    ratios = [float(ratio) for *_, ratio, _ in rows]
    assert min(ratios) > 0
    (largest,) = re.findall(
        r"^journal-postgres: a batch takes (\d+\.\d\d) times", told, re.MULTILINE
    )
    assert float(largest) == max(ratios)


def test_a_run_leaves_the_database_as_it_was(
    journal_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_journal, "BATCHES", (1,))
    printed(journal_url)
    ((is_there,),) = query(journal_url, "SELECT to_regnamespace('journal') IS NOT NULL")
    assert not is_there


@pytest.mark.anyio
async def test_a_database_with_a_journal_is_left_alone(journal_url: str) -> None:
    await Shards(journal_url).open("j").close()
    with pytest.raises(BenchFailed, match="the database has a journal"):
        await postgres_journal._measure(journal_url, HOLDER, ROUNDS)
    ((is_there,),) = query(journal_url, "SELECT to_regnamespace('journal') IS NOT NULL")
    assert is_there


def test_a_ratio_is_of_a_batch_to_a_bare_commit() -> None:
    measured = Measured(128, 2.0, 0.5)
    assert (measured.ratio, measured.records_per_s) == (4.0, 64_000)
