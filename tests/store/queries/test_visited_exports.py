"""A part of an export visits its own rows, however many the wallet has."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import pytest
from tests.store.queries.grown import GROWTH_MAX, Grown
from tests.store.queries.recorded_queries import postgres_plans, recorded

from foretell.bench.rigs.reads.history import History, HistoryPlan
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Database, Transaction
from foretell.store.queries.exports import (
    LEDGER_BEGIN,
    POSITIONS_BEGIN,
    load_changes_after,
    load_positions_after,
    load_trades_after,
)

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("grown")]  # both histories are made once

ROWS: Final = 20
VISITS_PER_ROW_MAX: Final = 3
"""A row, what it is joined with, and the row before it."""
AFTER_LARGE_TRADES: Final = (1, 0, 99)
"""The large trades of the short histories are not of the generated ones, and have no fills."""
VISITED: Final = re.compile(
    r"on (?:activities|exchange_fills|position\w*)\b.*rows=([\d.]+) loops=(\d+)"
)
Load = Callable[[Transaction, Address, tuple[Any, ...], int], Awaitable[Sequence[Any]]]
PARTS: Final[dict[str, tuple[Load, tuple[Any, ...]]]] = {
    "trades": (load_trades_after, AFTER_LARGE_TRADES),
    "positions": (load_positions_after, POSITIONS_BEGIN),
    "ledger": (load_changes_after, LEDGER_BEGIN),
}


@pytest.mark.parametrize(("load", "after"), PARTS.values(), ids=PARTS.keys())
async def test_a_part_takes_no_more_steps_when_the_wallet_has_ten_times_as_many_rows(
    grown: tuple[Grown, Grown], load: Load, after: tuple[Any, ...]
) -> None:
    steps: list[int] = []
    for each in grown:
        with recorded() as queries:
            async with each.database.reading() as tx:
                rows = await load(tx, Address(each.history.names.whale), after, ROWS)
        assert len(rows) == ROWS
        assert each.scanned(queries) == []
        steps.append(each.steps(queries))
    assert 0 < steps[1] <= GROWTH_MAX * steps[0], steps


@pytest.mark.parametrize(("load", "after"), PARTS.values(), ids=PARTS.keys())
async def test_postgres_visits_the_rows_of_a_part_alone(
    on_postgres: Database, load: Load, after: tuple[Any, ...]
) -> None:
    """Without a hint, as the planner has counted the rows."""
    whale = History(HistoryPlan(2, wallets=100, markets=20)).names.whale
    with recorded() as queries:
        async with on_postgres.reading() as tx:
            assert len(await load(tx, Address(whale), after, ROWS)) == ROWS
    plans = await postgres_plans(on_postgres, queries, may_scan=True, is_run=True)
    visits = [float(rows) * int(loops) for rows, loops in VISITED.findall("\n".join(plans))]
    assert visits, plans
    assert sum(visits) <= VISITS_PER_ROW_MAX * ROWS, plans
