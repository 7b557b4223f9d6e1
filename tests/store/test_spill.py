from pathlib import Path
from typing import NamedTuple

import pytest

from foretell.store.spill import SpilledRows, SpillFile


class Pair(NamedTuple):
    first: int
    second: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_all_rows_are_there_though_few_are_held(folder: Path) -> None:
    with SpillFile(rows_held_max=10) as spill:
        pairs: SpilledRows[tuple[str, int], Pair] = spill.mapping("pairs", 2, Pair)
        counts: SpilledRows[str, int] = spill.mapping("counts", 1, int, 0)
        for number in range(1_000):
            pairs[str(number % 7), number] = Pair(number, "a")
            counts[str(number % 7)] += 1
        pairs["0", 7] = Pair(-1, "b")
        assert pairs["0", 7] == Pair(-1, "b")
        assert pairs["6", 6] == Pair(6, "a")
        assert dict(counts.items()) == {str(each): 143 - (each > 5) for each in range(7)}
        rows = list(pairs.items())
        assert [key for key, _ in rows] == sorted((str(each % 7), each) for each in range(1_000))
        assert rows[1] == (("0", 7), Pair(-1, "b"))
        assert pairs.count_firsts() == 7
        assert spill.held_most == 10
        assert list(folder.iterdir())
    assert not list(folder.iterdir())


@pytest.mark.usefixtures("folder")
def test_a_missing_row_is_the_default_or_an_error() -> None:
    with SpillFile() as spill:
        counts: SpilledRows[str, int] = spill.mapping("counts", 1, int, 0)
        pairs: SpilledRows[tuple[str, int], Pair] = spill.mapping("pairs", 2, Pair)
        assert counts["a"] == 0
        assert "a" not in counts
        assert counts.get("a") is None
        assert counts.get("a", 5) == 5
        with pytest.raises(KeyError):
            _ = pairs["a", 1]
        counts["a"] = 0
        assert "a" in counts
