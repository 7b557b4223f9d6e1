"""A report of a wallet: positions, profit, and a chart of what its trades cost over time (SVG)."""

import asyncio
import sys
from pathlib import Path

from charts import Chart

import sandbox
from foretell.domain.values.amounts import decimal_text
from foretell.sdk.client import Foretell


async def main() -> Chart | None:
    """Print the first trader's positions, and return the chart of its trades."""
    async with Foretell.connect(sandbox.urls(), sandbox.signer("trader", 1)) as foretell:
        funds = await foretell.trader.collateral()
        positions = await foretell.portfolio.positions()
        trades = await foretell.portfolio.activity(type="TRADE", limit=500)
    print(f"collateral {decimal_text(int(funds.balance))}")
    for row in positions:
        print(f"{row['size']:>10} {row['outcome']:<4} {row['title']}: profit {row['cashPnl']}")
    print(f"open profit {sum(row['cashPnl'] for row in positions):.6f}")
    spent, points = 0.0, []
    for row in reversed(trades):
        spent += row["usdcSize"] * (1 if row["side"] == "BUY" else -1)
        points.append((row["timestamp"], spent))
    return Chart("collateral spent in trades", points) if points else None


chart = asyncio.run(main())
if chart is not None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "portfolio.svg")
    path.write_text(chart.svg())
    print(f"chart of {len(chart.points)} trades: {path}")
