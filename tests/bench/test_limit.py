import io

from rich.console import Console

from foretell.bench.limit import ONE, run_bench_limit


def test_a_check_of_two_windows_is_measured_against_a_plain_counter() -> None:
    file = io.StringIO()
    measured = run_bench_limit(3, 5_000, Console(file=file, width=200))
    assert len(measured) == 3
    assert all(one.us_by_kind[ONE] > 0 and one.ratio > 1 for one in measured)
    assert "us for each check of two windows" in file.getvalue()
