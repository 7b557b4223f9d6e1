"""`make cases`: the fault cases of tests/cases.md and the tests that prove them."""

import re
import sys
from pathlib import Path
from typing import Final

from tests.claims import main

TABLE: Final = Path(__file__).with_name("cases.md")

RULED_OUT: Final = "Ruled out"


def cases() -> dict[str, str]:
    """Return what must hold, by the id of the case."""
    rows = re.findall(r"^\| ([A-J]-\d\d) \| (.+) \|$", TABLE.read_text(), flags=re.MULTILINE)
    return dict(rows)


def ruled_out() -> set[str]:
    """Return the ids of the cases that need no test, for a reason that decision 20 has."""
    return {case for case, words in cases().items() if words.startswith(RULED_OUT)}


if __name__ == "__main__":
    titles = ("case", "what must hold")
    sys.exit(main("case", cases(), titles, ruled_out=ruled_out()))
