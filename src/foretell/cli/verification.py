"""`foretell verify data`: the tables of the index against the chain's logs, and those of the engine against its trades."""

from typing import Final

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import now_ms
from foretell.cli.failure import fail
from foretell.cli.sources import open_sources
from foretell.reconciliation.counted_quotes import QUOTE_TABLES
from foretell.reconciliation.data_report import DataReport
from foretell.reconciliation.verify import verify_data
from foretell.settings import Settings

JOURNAL_CURE: Final = (
    "foretell journal rebuild has the next start compute these again; stop the exchange first"
)


def run_verify_data(settings: Settings, console: Console) -> None:
    """Print how many rows of each table were compared, and fail when any of them differs."""
    report = uvloop.run(_verify(settings))
    table = Table("table", "rows", title=f"block {report.block_number}")
    for name, count in report.rows.items():
        table.add_row(name, str(count))
    console.print(table)
    for cursor, age_s in report.cursor_ages_s.items():
        console.print(f"{cursor}: {age_s} s behind the newest row", highlight=False)
    console.print(f"block hash {report.block_hash}", soft_wrap=True)
    for each in report.differences:
        line = f"{each.table} {each.key}: expected {each.expected}, the table has {each.of_table}"
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    of_journal = sorted(report.differing & QUOTE_TABLES)
    if of_journal:
        console.print(f"{', '.join(of_journal)}: {JOURNAL_CURE}", soft_wrap=True, highlight=False)
    if not report.is_exact:
        fail(f"{report.found} rows differ from what they should be")
    console.print(
        f"{report.wallets} wallets: every row that was compared is as computed from the chain, the trades, the books "
        "and the catalogue",
        soft_wrap=True,
    )


async def _verify(settings: Settings) -> DataReport:
    async with open_sources(settings) as (deployment, rpc, database):
        return await verify_data(database, rpc, deployment, now_ms=now_ms)
