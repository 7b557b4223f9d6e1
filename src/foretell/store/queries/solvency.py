"""The tokens of every condition that are held, page by page, for the report of solvency.

What is held of a token is its supply, which the indexer keeps from the logs of transfers. What the contracts hold against it is
asked of the chain, so a report compares two sources; `foretell verify data` compares the supplies with the logs.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa

from foretell.domain.contracts.neg_risk import NO_TOKEN_BURN, market_of_question
from foretell.domain.portfolio.positions import Payout
from foretell.domain.portfolio.solvency import OutstandingTokens
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import balances, conditions, locked_collateral, payouts, supplies

FIRST: Final = Bytes32("")
"""Before the id of every condition."""


async def load_outstanding(
    tx: Transaction, neg_risk_adapter: Address | None, after: Bytes32, limit: int
) -> Sequence[OutstandingTokens]:
    """Return the conditions after one, in the order of their ids."""
    rows = await tx.all(_conditions(), {"after": after, "rows": limit})
    return [_outstanding(row, neg_risk_adapter) for row in rows]


@lru_cache(maxsize=1)
def _conditions() -> sa.Select[Any]:
    """Return the query for a page of conditions, built once: building it costs as much as running it."""
    burned = balances.alias("burned")
    is_burned = sa.and_(burned.c.wallet == NO_TOKEN_BURN, burned.c.asset == conditions.c.token_no)
    of_yes, of_no = supplies.alias("of_yes"), supplies.alias("of_no")
    return (
        sa.select(
            conditions.c.condition_id,
            conditions.c.oracle,
            conditions.c.question_id,
            sa.func.coalesce(locked_collateral.c.units, 0).label("locked_units"),
            of_yes.c.units.label("yes_units"),
            of_no.c.units.label("no_units"),
            burned.c.units.label("burned_units"),
            payouts.c.payout_yes,
            payouts.c.payout_no,
        )
        .outerjoin(locked_collateral, locked_collateral.c.condition_id == conditions.c.condition_id)
        .outerjoin(payouts, payouts.c.condition_id == conditions.c.condition_id)
        .outerjoin(of_yes, of_yes.c.token_id == conditions.c.token_yes)
        .outerjoin(of_no, of_no.c.token_id == conditions.c.token_no)
        .outerjoin(burned, is_burned)
        .where(conditions.c.condition_id > sa.bindparam("after", type_=sa.Text))
        .order_by(conditions.c.condition_id)
        .limit(sa.bindparam("rows", type_=sa.BigInteger))
    )


def _outstanding(
    row: sa.Row[tuple[object, ...]], neg_risk_adapter: Address | None
) -> OutstandingTokens:
    is_of_event = row.oracle == neg_risk_adapter
    burned_units = (row.burned_units or 0) if is_of_event else 0
    return OutstandingTokens(
        condition_id=row.condition_id,
        event_id=market_of_question(row.question_id) if is_of_event else None,
        locked_units=row.locked_units,
        yes_units=int(row.yes_units or 0),
        no_units=int(row.no_units or 0) - burned_units,
        burned_units=burned_units,
        payout=None if row.payout_yes is None else Payout(row.payout_yes, row.payout_no),
    )
