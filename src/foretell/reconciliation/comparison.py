"""The comparison of the tables with the figures of the chain: every row of each, in both directions."""

from typing import Any

from foretell.reconciliation.chain_figures import ChainFigures
from foretell.reconciliation.compared_table import ComparedTable, compare
from foretell.reconciliation.counted_quotes import compared_quotes
from foretell.reconciliation.data_report import DataReport
from foretell.reconciliation.holdings import CountedPosition
from foretell.reconciliation.kept_counts import (
    count_series,
    count_supplies,
    count_tags,
    tag_sports,
)
from foretell.reconciliation.leaderboards.comparison import count_leaderboards
from foretell.reconciliation.leaderboards.ranks import compare_ranks
from foretell.reconciliation.plain_classes import class_of, role_of
from foretell.reconciliation.recounted_builders import count_builders
from foretell.reconciliation.recounted_listings import CountedMarket, count_events, count_markets
from foretell.reconciliation.recounted_volumes import count_volumes, load_unlisted
from foretell.reconciliation.traded_matches import compare_trades
from foretell.store.database import Transaction
from foretell.store.index.generations import load_live
from foretell.store.index.trading_totals import TradingTables, tables_of
from foretell.store.queries.index_tables import load_sums
from foretell.store.spill import SpillFile
from foretell.store.tables import (
    activities,
    allowance_changes,
    allowances,
    answers,
    balance_changes,
    balances,
    canceled_orders,
    conditions,
    event_totals,
    exchange_fills,
    locked_collateral,
    locked_collateral_changes,
    market_totals,
    payouts,
    position_changes,
    positions,
    raised_nonces,
    released_collateral,
    released_collateral_changes,
    series_totals,
    sport_tags,
    supplies,
    tags,
)

ACT_KIND, ACT_SIDE, ACT_COST, ACT_IS_TAKER = 1, 4, 6, 7
"""The places of some values in a counted act."""


async def compare_all(figures: ChainFigures, tx: Transaction, report: DataReport) -> None:
    """Compare every table, all read in one transaction."""
    with SpillFile(figures.spill.rows_held_max) as spill:
        live = await load_live(tx)
        leaderboards = await count_leaderboards(figures, spill, tx, live, report)
        catalog = await _of_catalog(figures, spill, tx)
        traded = compared_quotes(await compare_trades(figures, tx, spill, report))
        totals = *_totals(figures, tables_of(live)), await _volumes(figures, spill, tx, live)
        supplied = _supplies(figures, spill)
        builders = await count_builders(tx, spill)
        of_chain = *_states(figures), supplied, *_changes(figures), *_histories(figures), *totals
        for compared in (*of_chain, *traded, *leaderboards.tables, *catalog, *builders):
            await compare(compared, spill, load_sums(tx, compared.table, live), report)
        await compare_ranks(tx, spill, leaderboards.sums, report)
        report.rows_held = max(figures.spill.held_most, spill.held_most)
    report.wallets = figures.balances.now.count_firsts()


def _states(figures: ChainFigures) -> tuple[ComparedTable, ...]:
    """Return the tables of current values."""
    return (
        ComparedTable(
            balances,
            figures.balances.now,
            lambda row: (row.wallet, row.asset),
            lambda row: row.units or None,
            lambda units: units or None,
        ),
        ComparedTable(
            allowances,
            figures.allowances.now,
            lambda row: (row.wallet, row.spender, row.is_collateral),
            lambda row: row.units or None,
            lambda units: units or None,
        ),
        ComparedTable(
            positions,
            figures.last_changes,
            lambda row: (row.wallet, row.token_id),
            lambda row: (*row[3:8], row.changed_at_s, row.block_number),
            lambda last: (*_cells(last[2]), last[1], last[0]),
        ),
        *(
            ComparedTable(
                table,
                counted.now,
                lambda row: row.condition_id,
                lambda row: row.units or None,
                lambda units: units or None,
            )
            for table, counted in (
                (locked_collateral, figures.locked),
                (released_collateral, figures.released),
            )
        ),
    )


def _supplies(figures: ChainFigures, spill: SpillFile) -> ComparedTable:
    """Return the table of supplies, each the sum of what the wallets hold of a token."""

    def unless_none(units: str) -> str | None:
        return units if int(units) else None

    return ComparedTable(
        supplies,
        count_supplies(figures, spill),
        lambda row: row.token_id,
        lambda row: unless_none(row.units),
        unless_none,
    )


def _changes(figures: ChainFigures) -> tuple[ComparedTable, ...]:
    """Return the tables of values after the blocks that changed them.

    Those of a wallet that was read from the chain begin with the reading, which no log shows.
    """

    def is_logged(key: tuple[Any, ...]) -> bool:
        return key[0] not in figures.wallets_read

    return (
        ComparedTable(
            balance_changes,
            figures.balances.history,
            lambda row: (row.wallet, row.asset, row.block_number),
            lambda row: row.units,
            is_compared=is_logged,
        ),
        ComparedTable(
            allowance_changes,
            figures.allowances.history,
            lambda row: (row.wallet, row.spender, row.is_collateral, row.block_number),
            lambda row: row.units,
            is_compared=is_logged,
        ),
        ComparedTable(
            position_changes,
            figures.changes,
            lambda row: (row.wallet, row.token_id, row.block_number),
            lambda row: (*row[3:8], row.changed_at_s),
            lambda change: (*_cells(change.position), change.at_s),
        ),
        *(
            ComparedTable(
                table,
                counted.history,
                lambda row: (row.condition_id, row.block_number),
                lambda row: row.units,
            )
            for table, counted in (
                (locked_collateral_changes, figures.locked),
                (released_collateral_changes, figures.released),
            )
        ),
    )


def _histories(figures: ChainFigures) -> tuple[ComparedTable, ...]:
    """Return the tables whose rows are written once."""
    return (
        ComparedTable(
            conditions,
            figures.conditions,
            lambda row: row.condition_id,
            lambda row: (row.oracle, row.question_id, row.token_yes, row.token_no),
            lambda each: (each.oracle, each.question, each.yes, each.no),
        ),
        ComparedTable(
            payouts,
            figures.payouts,
            lambda row: row.condition_id,
            lambda row: (*row[4:6], row.timestamp_s, row.tx_hash, row.block_number),
        ),
        ComparedTable(
            activities,
            figures.acts,
            _place,
            lambda row: tuple(row[3:]),
            lambda act: (
                *(*act, class_of(act[ACT_COST])),
                role_of(act[ACT_KIND], act[ACT_SIDE], is_taker=act[ACT_IS_TAKER]),
            ),
        ),
        ComparedTable(exchange_fills, figures.fills, _place, lambda row: tuple(row[3:])),
        ComparedTable(answers, figures.answers, _place, lambda row: tuple(row[3:])),
        ComparedTable(
            canceled_orders, figures.canceled, _place, lambda row: (row.exchange, row.order_id)
        ),
        ComparedTable(
            raised_nonces,
            figures.stops,
            lambda row: (row.block_number, row.log_index, row.part),
            lambda row: (row.exchange, row.maker, row.nonce),
        ),
    )


def _totals(figures: ChainFigures, tables: TradingTables) -> tuple[ComparedTable, ...]:
    """Return the tables of wallets' totals that are read."""
    return (
        ComparedTable(
            tables.totals.current,
            figures.totals.now,
            lambda row: row.wallet,
            lambda row: (row.trades, row.markets, row.volume_units),
        ),
        ComparedTable(
            tables.totals.history,
            figures.totals.history,
            lambda row: (row.wallet, row.block_number),
            lambda row: (row.trades, row.markets, row.volume_units),
        ),
        ComparedTable(
            tables.markets,
            figures.first_trades,
            lambda row: (row.wallet, row.condition_id),
            lambda row: row.block_number,
        ),
    )


async def _volumes(
    figures: ChainFigures, spill: SpillFile, tx: Transaction, live: int
) -> ComparedTable:
    """Return the table of volumes by exchange that is read."""
    table = tables_of(live).volumes
    unlisted = await load_unlisted(tx, spill, table)
    return ComparedTable(
        table,
        await count_volumes(figures, tx, spill, unlisted),
        lambda row: (row.wallet, row.exchange, row.block_number),
        lambda row: (row.traded_at_s, row.volume_high, row.volume_low),
        tuple,
        lambda key: key[0] not in unlisted,
    )


async def _of_catalog(
    figures: ChainFigures, spill: SpillFile, tx: Transaction
) -> tuple[ComparedTable, ...]:
    """Return the kept totals of the catalogue."""
    return (
        ComparedTable(
            market_totals,
            await count_markets(figures, tx, spill),
            lambda row: row.market_id,
            CountedMarket.of,
        ),
        ComparedTable(
            event_totals,
            await count_events(tx, spill),
            lambda row: row.event_id,
            lambda row: tuple(row[1:]),
        ),
        ComparedTable(
            series_totals,
            await count_series(tx, spill),
            lambda row: row.series_id,
            lambda row: (row.volume_units, row.open_events),
        ),
        ComparedTable(
            tags,
            await count_tags(tx, spill),
            lambda row: row.tag_id,
            lambda row: row.event_count or None,
        ),
        ComparedTable(sport_tags, await tag_sports(tx, spill), tuple, lambda _: True),
    )


def _place(row: Any) -> tuple[int, int]:
    return row.block_number, row.log_index


def _cells(position: CountedPosition) -> tuple[int, ...]:
    return position.size, position.cost, position.bought, position.spent, position.realized
