"""GET /solvency: the report, and a page of conditions."""

from typing import Final

from foretell.data.context import DataContext
from foretell.data.responses import (
    ConditionSolvency,
    NamedDeficit,
    PoolSolvency,
    SolvencyPage,
    SolvencyResponse,
    TotalSolvency,
)
from foretell.data.solvency_books import CONDITIONS_PER_READ, last_block
from foretell.domain.portfolio.solvency import OutstandingTokens, SolvencyTotal
from foretell.domain.values.hexadecimal import Bytes32
from foretell.edge.parameters import conditions, integer
from foretell.edge.query import Query
from foretell.edge.rendering import amount
from foretell.store.queries.solvency import FIRST


def _first(ids: list[Bytes32]) -> Bytes32:
    return ids[0] if ids else FIRST


LIMIT: Final = integer("limit", 100, 0, CONDITIONS_PER_READ, "conditions of the page")
AFTER: Final = conditions("after", "next of the page before: a condition id").convert(_first)
PARAMETERS: Final = (LIMIT, AFTER)


async def report_solvency(context: DataContext, query: Query) -> SolvencyResponse:
    """Return the solvency of all conditions, and a page of them."""
    limit, after = query.read(LIMIT), query.read(AFTER)
    query.check_known()
    total = await context.solvency.total()
    async with context.database.public_reading() as tx:
        block = await last_block(tx)
        rows = await context.solvency.page(tx, after, limit)
    is_full = limit > 0 and len(rows) == limit
    page = SolvencyPage(
        block=block.block_number,
        block_hash=block.block_hash,
        conditions=[_condition(row) for row in rows],
        next=rows[-1].condition_id if is_full else "",
    )
    return SolvencyResponse(total=total_response(total), page=page)


def total_response(total: SolvencyTotal) -> TotalSolvency:
    """Return the wire form of a report."""
    return TotalSolvency(
        block=total.block_number,
        block_hash=total.block_hash,
        timestamp=total.computed_at_ms // 1000,
        is_solvent=total.is_solvent,
        held=amount(total.held_units),
        owed=amount(total.owed_units),
        deficit=amount(total.deficit_units),
        conditions=total.conditions,
        short_conditions=total.short_conditions,
        pools=[
            PoolSolvency(
                name=pool.name,
                held=amount(pool.held_units),
                owed=amount(pool.owed_units),
                deficit=amount(pool.deficit_units),
            )
            for pool in total.pools
        ],
        deficits=[
            NamedDeficit(name=each.name, amount=amount(each.units)) for each in total.deficits
        ],
    )


def _condition(tokens: OutstandingTokens) -> ConditionSolvency:
    return ConditionSolvency(
        condition_id=tokens.condition_id,
        negative_risk=tokens.event_id is not None,
        is_resolved=tokens.payout is not None,
        held=amount(tokens.locked_units),
        owed=amount(tokens.owed_units),
        deficit=amount(tokens.deficit_units),
    )
