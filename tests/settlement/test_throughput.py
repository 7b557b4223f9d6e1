"""The documented trades a second of a public chain follow from the measured gas of a batch."""

import json
import re
from pathlib import Path
from typing import Final

from foretell.domain.contracts.batches import MATCHES_MAX

ROOT: Final = Path(__file__).parents[2]
BATCHES: Final = ("batch, packed transfer, v1, takers: 20", "batch, mint, v1, takers: 20")
ROW: Final = re.compile(
    r"^\| ([\d,]+) \| (\d+) \| ([\d,]+) \| (\d+) \| ([\d,]+) \| (\d+) \|$", re.MULTILINE
)


def test_the_trades_a_second_of_each_gas_limit_are_those_of_the_measured_gas() -> None:
    gas_by_call = json.loads((ROOT / "contracts" / "gas.json").read_text())
    page = (ROOT / "docs" / "reference" / "settlement.md").read_text()
    rows = [[int(each.replace(",", "")) for each in row] for row in ROW.findall(page)]
    assert len(rows) == 4
    for gas_limit, seconds, *documented in rows:
        wanted = [
            gas_limit * MATCHES_MAX // (gas_by_call[batch] * seconds * part)
            for batch in BATCHES
            for part in (1, 10)
        ]
        for shown, exact in zip(documented, wanted, strict=True):
            assert abs(shown - exact) <= max(1, exact // 50)
