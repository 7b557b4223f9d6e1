"""Ranks of some wallets as readers find them, against a sort of all standings.

A reader adds up the counts of buckets, parts and ties. The sort has none of these, so it also finds a bucket that is not in
the order of its amounts.
"""

from typing import Final

from foretell.domain.portfolio.periods import Period
from foretell.domain.values.hexadecimal import Address
from foretell.reconciliation.data_report import DataReport
from foretell.reconciliation.leaderboards.rank_counts import ranked
from foretell.reconciliation.leaderboards.standings import StandingKey
from foretell.store.database import Transaction
from foretell.store.queries.leaderboards import RankingOrder, RankingScope, load_ranking_of
from foretell.store.spill import SpilledRows, SpillFile

RANKS: Final = "ranks"
RANKS_PER_BOARD: Final = 5
"""Wallets whose rank is read in each period and category, by gain and by volume: at equal distances in the order."""
_ORDERS: Final = {"gain": RankingOrder.GAIN, "volume": RankingOrder.VOLUME}

Board = tuple[int, str, str]
"""A period, a category and what is counted."""


async def compare_ranks(
    tx: Transaction,
    spill: SpillFile,
    sums: SpilledRows[StandingKey, tuple[int, int]],
    report: DataReport,
) -> None:
    """Read the ranks of some wallets of each board, and compare them with their places in it."""
    boards: SpilledRows[Board, int] = spill.mapping("boards", 3, int, 0)
    places: SpilledRows[tuple[int, str, str, int, str], bool] = spill.mapping("places", 5, bool)
    for (period, category, wallet), units in sums.items():
        for name, amount in ranked(units):
            boards[period, category, name] += 1
            places[period, category, name, amount, wallet] = True
    report.rows[RANKS] = 0
    board, number = (0, "", ""), 0
    for (period, category, name, _, wallet), _ in places.items():  # noqa: PERF102 - a mapping in a file has no `keys`
        if board != (period, category, name):
            board, number = (period, category, name), 0
        wallets = boards[board]
        number += 1
        if number * RANKS_PER_BOARD // wallets > (number - 1) * RANKS_PER_BOARD // wallets:
            scope = RankingScope(Period(period), category or None)
            own = await load_ranking_of(tx, scope, _ORDERS[name], Address(wallet))
            rank = None if own is None else own.rank
            report.add(RANKS, (*board, wallet), wallets - number + 1, rank)
