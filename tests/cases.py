"""`make cases`: the fault cases of tests/cases.md and the tests that prove them."""

import re
import sys
from pathlib import Path
from typing import Final

from tests.claims import main

TABLE: Final = Path(__file__).with_name("cases.md")


def cases() -> dict[str, str]:
    """Return what must hold, by the id of the case."""
    rows = re.findall(r"^\| ([A-J]-\d\d) \| (.+) \|$", TABLE.read_text(), flags=re.MULTILINE)
    return dict(rows)


if __name__ == "__main__":
    sys.exit(main("case", cases(), ("case", "what must hold"), may_be_open=True))
