"""`make spec`: the statements of docs/reference/checklist.md and the tests that prove them.

Fails when a row has no test or a failing one.
"""

import re
import sys
from pathlib import Path
from typing import Final

from tests.claims import main

CHECKLIST: Final = Path(__file__).parents[1] / "docs" / "reference" / "checklist.md"


def statements() -> dict[str, str]:
    """Return the checklist's statements by row."""
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", CHECKLIST.read_text(), flags=re.MULTILINE)
    return dict(rows)


if __name__ == "__main__":
    sys.exit(main("spec", statements(), ("row", "statement")))
