import io

import pytest
from rich.console import Console

from foretell.bench.rigs.figures import SETTLE
from foretell.bench.settle import SettlePlan, run_bench_settle


@pytest.mark.parametrize(
    ("plan", "txs"), [(SettlePlan(1, 4), 1), (SettlePlan(1, 4, is_alone=True), 4)]
)
def test_trades_are_settled_and_mined_again_by_the_chain_alone(plan: SettlePlan, txs: int) -> None:
    file = io.StringIO()
    (measured,) = run_bench_settle(plan, Console(file=file, width=200))
    assert measured.figure == SETTLE
    assert measured.seen > 0
    row = next(line for line in file.getvalue().splitlines() if line.startswith("│"))
    assert int(row.split("│")[-3]) == txs
