"""Compilers as child processes: their work has a limit, not the time that a busy machine gives them."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Final

PROCESSOR_S_MAX: Final = 300
"""The processor time of each process: many times what a build takes."""

WAITING_S_MAX: Final = 1_800
"""A compiler that takes no processor time waits for something that never comes."""

_LIMITED: Final = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1])))
os.execv(sys.argv[2], sys.argv[2:])
"""


def compiled(
    command: Sequence[str],
    processor_s_max: int = PROCESSOR_S_MAX,
    waiting_s_max: float = WAITING_S_MAX,
) -> subprocess.CompletedProcess[str]:
    """Return what a compiler prints, and its exit code; a signal ends one that works for too long."""
    return subprocess.run(
        [sys.executable, "-c", _LIMITED, str(processor_s_max), *command],
        capture_output=True,
        check=False,
        text=True,
        timeout=waiting_s_max,
    )
