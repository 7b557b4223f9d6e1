"""Stories of web/e2e in a real browser, on a running installation."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.rigs.installation import Running

ROOT: Final = Path(__file__).parents[2]
PICTURES: Final = ROOT / "build" / "web"
STORY_DEADLINE_S: Final = 1_800
"""Only against a hang: each step of a story has a deadline of its own."""
LOG_LINES: Final = 60
CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")


def play(running: Running, story: str) -> None:
    """Play a story to its end; fail with what it and the installation printed."""
    assert CHROMIUM is not None
    node = [sys.executable, str(ROOT / "requirements" / "node.py"), "web"]
    ready = str(running.data / "ready.json")
    ran = subprocess.run(
        [*node, f"e2e/{story}.mjs", ready, str(PICTURES), CHROMIUM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=STORY_DEADLINE_S,
        check=False,
    )
    sys.stdout.write(ran.stdout)
    log = "\n".join(running.output.splitlines()[-LOG_LINES:])
    assert ran.returncode == 0, f"{ran.stdout}{ran.stderr}\nthe installation says:\n{log}"
