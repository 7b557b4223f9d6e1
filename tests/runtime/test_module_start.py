"""Starting a module as a program with few searches for garbage."""

import os
import subprocess
from pathlib import Path

from foretell.runtime.garbage_collection import STARTING_OBJECTS_MAX
from foretell.runtime.module_start import START

PROGRAM = "import gc, sys; print(__name__, sys.argv[1:], gc.get_threshold()[0])"


def test_a_module_runs_as_a_program_with_its_arguments_and_few_searches(tmp_path: Path) -> None:
    (tmp_path / "a_program.py").write_text(PROGRAM)
    found = os.environ | {"PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(
        [*START, "a_program", "7"], env=found, check=True, capture_output=True, timeout=60
    )
    assert ran.stdout.decode().split("\n")[0] == f"__main__ ['7'] {STARTING_OBJECTS_MAX}"


def test_a_module_that_does_not_exist_is_an_error() -> None:
    ran = subprocess.run([*START, "no_program"], check=False, capture_output=True, timeout=60)
    assert ran.returncode == 1
    assert b"no_program" in ran.stderr
