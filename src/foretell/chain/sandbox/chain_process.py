"""The process of the sandbox's chain, as its pid file and the system know it."""

import resource
from pathlib import Path


def process_running(pid_file: Path, argument: str) -> int | None:
    """Return the process id of the file, or None unless this is an argument of its command: a copied file lies."""
    try:
        pid = int(pid_file.read_text())
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if argument.encode() in arguments else None


def resident_bytes(pid_file: Path) -> int:
    """Return the resident memory of the process of the file, 0 while it does not run."""
    try:
        pages = Path(f"/proc/{int(pid_file.read_text())}/statm").read_text().split()[1]
    except (OSError, ValueError):
        return 0
    return int(pages) * resource.getpagesize()
