"""C-12: no process leaves a dump of its memory, which has its keys."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from foretell.runtime.core_dumps import CORE_BYTES_MAX
from foretell.runtime.module_start import START

DUMPS_ALLOWED: Final = (
    "import resource as r; r.setrlimit(r.RLIMIT_CORE, (r.getrlimit(r.RLIMIT_CORE)[1],) * 2)\n"
)
LIMITS: Final = """
import subprocess
with open(f"/proc/{__import__('os').getpid()}/limits") as limits:
    print(limits.read())
print(subprocess.run(["cat", "/proc/self/limits"], capture_output=True, text=True).stdout)
"""
AS_MODULE: Final = (*START, "a_program")
AS_COMMAND: Final = (sys.executable, "the_command.py", "--version")
COMMAND: Final = """
import atexit
atexit.register(exec, open("a_program.py").read(), {})
from foretell.__main__ import run
run()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program, and one that runs it when the command `foretell` has ended."""
    (tmp_path / "a_program.py").write_text(LIMITS)
    (tmp_path / "the_command.py").write_text(COMMAND)
    return tmp_path


def started(command: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command where dumps of any size may be written, unless it forbids them."""
    allowed = f"import os, sys\n{DUMPS_ALLOWED}os.execv(sys.argv[1], sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-c", allowed, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.case("C-12")
@pytest.mark.parametrize("command", [AS_MODULE, AS_COMMAND], ids=["module", "command"])
def test_a_process_and_its_children_may_write_no_core_dump(
    command: Sequence[str], folder: Path
) -> None:
    printed = started(command, folder).stdout
    limits = [
        line.split()[4:6] for line in printed.splitlines() if line.startswith("Max core file size")
    ]
    assert len(limits) == 2
    assert {each for pair in limits for each in pair} <= {"0", str(CORE_BYTES_MAX)}


@pytest.mark.case("C-12")
def test_a_process_that_crashes_leaves_no_core_dump(folder: Path) -> None:
    (folder / "a_program.py").write_text(f"import os; os.kill(os.getpid(), {signal.SIGABRT:d})")
    assert started(AS_MODULE, folder).returncode == -signal.SIGABRT
    assert [each for each in folder.iterdir() if each.name.startswith("core")] == []
