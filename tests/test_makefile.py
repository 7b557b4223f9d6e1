"""The targets of the Makefile."""

import re
from pathlib import Path

MAKEFILE = (Path(__file__).parents[1] / "Makefile").read_text()


def test_every_target_has_one_rule() -> None:
    named = MAKEFILE.partition(".PHONY:")[2].partition("\n")[0].split()
    rules = re.findall(r"^([a-z-]+):(?!=)", MAKEFILE, re.MULTILINE)
    assert sorted(rules) == sorted(set(rules))
    assert set(named) <= set(rules)
