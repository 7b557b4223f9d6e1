"""Samples of processes and files."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.rigs.values import an_open_market

from foretell.bench.rigs.soak.messages import SoakWindow
from foretell.bench.rigs.soak.samples import (
    ORDER_BYTES,
    ORDER_ID_BYTES,
    SERVER,
    SERVER_LESS_KNOWN,
    SQLITE,
    processes,
    sample,
    size_bytes,
)
from foretell.domain.exchange.order import OrderStatus, OrderType
from foretell.domain.exchange.state import PLACEMENTS_KEPT_MAX, Market, Placement, State
from foretell.domain.values.hexadecimal import ZERO_BYTES32, word_of

WINDOW = SoakWindow(3.0, 1.0, 2.0, None, None, 3.0, 0.0, 0.5, 2, 7, 0)


@pytest.mark.parametrize(
    ("filled", "orders", "kept", "ids"),
    [
        (0, 0, 0, 0),
        (0, 7, 7, 0),
        (3, 7, 10, 0),
        (0, 10**6, PLACEMENTS_KEPT_MAX, 10**6 - PLACEMENTS_KEPT_MAX),
        (PLACEMENTS_KEPT_MAX, 7, PLACEMENTS_KEPT_MAX, 7),
    ],
)
def test_the_memory_of_sqlite_and_of_orders_is_left_out_whole_up_to_a_bound_and_then_their_ids(
    tmp_path: Path, filled: int, orders: int, kept: int, ids: int
) -> None:
    """A finding: the ids of fifty orders a second alone were over the bar, though an exchange needs them."""
    window = SoakWindow(3.0, 1.0, 2.0, None, None, 3.0, 0.0, 0.5, 2, orders, 0, sqlite_bytes=5e6)
    # It has the name of a server, and waits.
    script = "import sys; print('up', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script, "foretell up"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        values = sample(process.pid, tmp_path, window, filled)
        process.communicate()
    left_out = kept * ORDER_BYTES + ids * ORDER_ID_BYTES
    assert values[SQLITE] == 5.0
    assert values[SERVER] - values[SERVER_LESS_KNOWN] == pytest.approx(5.0 + left_out / 1e6)
    assert values["files open"] >= 3
    assert "reads p50 ms" not in values
    assert values["orders p99 ms"] == 2.0
    assert values["backlog"] == 2


def test_an_id_takes_what_is_left_out_for_it() -> None:
    state, market = State(placements_kept_max=0), Market(an_open_market())
    state.add(market)
    placed = Placement(
        order_id=ZERO_BYTES32,
        condition_id=market.opened.condition_id,
        owner="",
        order_type=OrderType.GTC,
        leaves_at_s=None,
        status=OrderStatus.LIVE,
        making_units=0,
        taking_units=0,
        trade_ids=(),
    )
    for number in range(3):
        order_id = word_of(number.to_bytes(32, "big"))
        state.remember(order_id, msgspec.structs.replace(placed, order_id=order_id))
    rounded_up = {-(-sys.getsizeof(each) // 16) * 16 for each in market.forgotten_order_ids}
    assert rounded_up == {ORDER_ID_BYTES}


def test_a_process_that_ended_has_no_sample(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    values = sample(process.pid, tmp_path, WINDOW)
    assert SERVER not in values
    assert SERVER_LESS_KNOWN not in values


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
