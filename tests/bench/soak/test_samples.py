"""Samples of processes and files."""

import subprocess
import sys
from pathlib import Path

import pytest

from foretell.bench.rigs.soak.messages import SoakWindow
from foretell.bench.rigs.soak.samples import (
    ORDER_BYTES,
    SERVER,
    SERVER_LESS_ORDERS,
    processes,
    sample,
    size_bytes,
)
from foretell.domain.exchange.state import PLACEMENTS_KEPT_MAX

WINDOW = SoakWindow(3.0, 1.0, 2.0, None, None, 3.0, 0.0, 0.5, 2, 7, 0)


@pytest.mark.parametrize(
    ("filled", "orders", "kept"),
    [
        (0, 0, 0),
        (0, 7, 7),
        (3, 7, 10),
        (0, 10**6, PLACEMENTS_KEPT_MAX),
        (PLACEMENTS_KEPT_MAX, 7, PLACEMENTS_KEPT_MAX),
    ],
)
def test_the_memory_of_kept_orders_is_left_out_up_to_its_bound(
    tmp_path: Path, filled: int, orders: int, kept: int
) -> None:
    window = SoakWindow(3.0, 1.0, 2.0, None, None, 3.0, 0.0, 0.5, 2, orders, 0)
    # It has the name of a server, and waits.
    script = "import sys; print('up', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script, "foretell up"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        values = sample(process.pid, tmp_path, window, filled)
        process.communicate()
    assert values[SERVER] - values[SERVER_LESS_ORDERS] == pytest.approx(kept * ORDER_BYTES / 1e6)
    assert values["files open"] >= 3
    assert "reads p50 ms" not in values
    assert values["orders p99 ms"] == 2.0
    assert values["backlog"] == 2


def test_a_process_that_ended_has_no_sample(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    values = sample(process.pid, tmp_path, WINDOW)
    assert SERVER not in values
    assert SERVER_LESS_ORDERS not in values


def test_only_processes_of_a_sandbox_are_named() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert processes(process.pid) == {}
        process.communicate()


def test_the_files_of_a_folder_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "foretell.db").write_bytes(b"x" * 10)
    (tmp_path / "foretell.db-wal").write_bytes(b"x" * 5)
    (tmp_path / "other").write_bytes(b"x")
    assert size_bytes(tmp_path, "foretell.db*") == 15
    assert size_bytes(tmp_path, "journal/*") == 0
