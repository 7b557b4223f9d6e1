import os
import subprocess
import sys
from pathlib import Path

import pytest

from foretell.bench.rigs.machine import Usage, others_words, sync_s, usage_with

BUSY = """
import time
input()
began_s = time.process_time()
while time.process_time() < began_s + 0.4:
    pass
input()
"""


def test_the_use_of_others_is_all_use_without_our_own() -> None:
    before = Usage(at_s=10, all_s=100, own_s=50)
    later = Usage(at_s=12, all_s=103, own_s=52)
    assert before.others_cores(later) == 0.5


def test_rounding_of_the_kernel_counts_for_no_program() -> None:
    assert Usage(0, 0, 0).others_cores(Usage(1, 1, 1.01)) == 0


def test_what_other_machines_took_is_never_hidden_by_rounding() -> None:
    assert Usage(0, 0, 0).others_cores(Usage(2, 1, 1.5, 0.3)) == 0.15


@pytest.mark.parametrize(("cores", "words"), [(0.1, "0.10"), (0.11, "0.11 !")])
def test_more_than_a_tenth_of_a_core_is_marked(cores: float, words: str) -> None:
    assert others_words(cores) == words


def test_the_use_of_a_child_is_our_own() -> None:
    """The child works when it is asked to, and what is waited for is its use alone."""
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        before = usage_with(child.pid)
        own = os.times()

        def used_by_test() -> float:
            now = os.times()
            return now.user + now.system - own.user - own.system

        child.stdin.write(b"\n")
        child.stdin.flush()
        while usage_with(child.pid).own_s - before.own_s - used_by_test() < 0.2:
            os.sched_yield()
        after, mine = usage_with(child.pid), used_by_test()
        child.communicate(b"\n")
    assert after.own_s - before.own_s - mine > 0
    assert after.all_s >= before.all_s
    assert after.at_s > before.at_s


def test_a_sync_takes_some_time_and_leaves_nothing(tmp_path: Path) -> None:
    assert sync_s(tmp_path, 3) > 0
    assert list(tmp_path.iterdir()) == []
