"""The tokens of every condition that are held, page by page, for the report of solvency."""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN, market_of_question
from foretell.domain.portfolio.positions import Payout
from foretell.domain.portfolio.solvency import OutstandingTokens
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import balances, conditions, locked_collateral, payouts
from foretell.store.wide_sums import read_wide, wide_sum

FIRST: Final = Bytes32("")
"""Before the id of every condition."""


async def load_outstanding(
    tx: Transaction, neg_risk_adapter: Address | None, after: Bytes32, limit: int
) -> Sequence[OutstandingTokens]:
    """Return the conditions after one, in the order of their ids."""
    rows = await tx.all(
        sa.select(
            conditions.c.condition_id,
            conditions.c.oracle,
            conditions.c.question_id,
            sa.func.coalesce(locked_collateral.c.units, 0).label("locked_units"),
            _held(conditions.c.token_yes).label("yes_units"),
            _held(conditions.c.token_no).label("no_units"),
            _held(conditions.c.token_no, balances.c.wallet == NO_TOKEN_BURN).label("burned_units"),
            payouts.c.payout_yes,
            payouts.c.payout_no,
        )
        .outerjoin(locked_collateral, locked_collateral.c.condition_id == conditions.c.condition_id)
        .outerjoin(payouts, payouts.c.condition_id == conditions.c.condition_id)
        .where(conditions.c.condition_id > after)
        .order_by(conditions.c.condition_id)
        .limit(limit)
    )
    return [_outstanding(row, neg_risk_adapter) for row in rows]


def _held(token: sa.Column[str], *where: sa.ColumnElement[bool]) -> sa.ScalarSelect[str]:
    """Return how much of a token all wallets hold."""
    held = sa.select(wide_sum(balances.c.units))
    return held.where(balances.c.asset == token, *where).scalar_subquery()


def _outstanding(
    row: sa.Row[tuple[object, ...]], neg_risk_adapter: Address | None
) -> OutstandingTokens:
    is_of_event = row.oracle == neg_risk_adapter
    burned_units = read_wide(row.burned_units) if is_of_event else 0
    return OutstandingTokens(
        condition_id=row.condition_id,
        event_id=market_of_question(row.question_id) if is_of_event else None,
        locked_units=row.locked_units,
        yes_units=read_wide(row.yes_units),
        no_units=read_wide(row.no_units) - burned_units,
        burned_units=burned_units,
        payout=None if row.payout_yes is None else Payout(row.payout_yes, row.payout_no),
    )
