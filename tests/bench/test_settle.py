import io
from pathlib import Path

import pytest
from rich.console import Console

from foretell.bench.rigs.figures import SETTLE, SETTLE_BESIDE
from foretell.bench.settle import SettlePlan, run_bench_settle

GAS_RATIO_MAX = 0.85


@pytest.mark.parametrize(
    ("plan", "txs"),
    [(SettlePlan(1, 4, orders_per_s=100), 1), (SettlePlan(1, 4, is_alone=True), 4)],
)
def test_trades_are_settled_and_mined_again_by_the_chain_alone(
    plan: SettlePlan, txs: int, tmp_path: Path
) -> None:
    file, page = io.StringIO(), tmp_path / "page.md"
    page.write_text(f"before\n<!-- {plan.block}: begin -->\n<!-- {plan.block}: end -->\nafter\n")
    plan = plan._replace(page=page)
    (measured,) = run_bench_settle(plan, Console(file=file, width=200))
    assert measured.figure == (SETTLE_BESIDE if plan.orders_per_s else SETTLE)
    assert measured.seen > 0
    lines = file.getvalue().splitlines()
    row = next(line for line in lines if line.startswith("│")).split("│")
    assert int(row[5]) == txs
    assert (int(row[9]) > 0) is (plan.orders_per_s > 0)
    assert int(row[9]) <= plan.orders_per_s
    (ratio,) = (line.split("(ratio ")[1] for line in lines if line.startswith("gas of a trade"))
    assert float(ratio.removesuffix(")")) <= GAS_RATIO_MAX
    written = page.read_text()
    assert f"(ratio {ratio}" in written
    assert f"| {' | '.join(cell.strip() for cell in row[1:-1])} |" in written
