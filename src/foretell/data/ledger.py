"""The ledger of a position: every change of its figures, in the order of the chain, with its causes."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from foretell.data.context import DataContext
from foretell.data.parameters import USER
from foretell.data.responses import (
    LedgerAct,
    LedgerEntry,
    LedgerFigures,
    LedgerResponse,
)
from foretell.domain.errors.http import MalformedQuery
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import Position
from foretell.domain.values.hexadecimal import checksum_address
from foretell.edge.parameters import ID_MAX, integer, optional_integer, required_text
from foretell.edge.query import Query
from foretell.edge.rendering import amount
from foretell.store.index.activities import ActivityRow
from foretell.store.queries.ledger import (
    PositionAt,
    load_acts_at,
    load_position_history,
    load_position_now,
)

TOKEN_DIGITS_MAX: Final = 78
BEFORE_ALL: Final = -1
ACTS_MAX: Final = 500
"""Activities of a page: a wallet may do hundreds of things in one block."""
LIMIT: Final = integer("limit", 100, 1, 200, "changes of a page")
AFTER: Final = optional_integer("after", 0, ID_MAX, "the next of the page before, a block")
TOKEN: Final = required_text("token", "token id, a decimal string").in_path()
PARAMETERS: Final = (USER, LIMIT, AFTER)


async def show_ledger(context: DataContext, query: Query, token: str) -> LedgerResponse:
    """Return a page of the changes of a wallet's position in a token."""
    wallet, limit, after = query.read(USER), query.read(LIMIT), query.read(AFTER)
    query.check_known()
    if not (token.isascii() and token.isdigit() and len(token) <= TOKEN_DIGITS_MAX):
        raise MalformedQuery("token", f"at most {TOKEN_DIGITS_MAX} decimal digits")
    asset = AssetId(token)
    async with context.database.public_reading() as tx:
        now = await load_position_now(tx, wallet, asset)
        start = BEFORE_ALL if after is None else after
        before, found = await load_position_history(tx, wallet, asset, start, limit + 1)
        history, acts = await load_acts_at(tx, wallet, asset, found[:limit], ACTS_MAX)
    return LedgerResponse(
        proxy_wallet=checksum_address(wallet),
        asset=token,
        condition_id=now.condition_id,
        before=_figures(before.position),
        entries=[
            _entry(was, then, acts[then.block_number]) for was, then in pairwise((before, *history))
        ],
        now=_figures(now.position),
        next=str(history[-1].block_number) if len(found) > len(history) else "",
    )


def _entry(was: PositionAt, then: PositionAt, acts: Sequence[ActivityRow]) -> LedgerEntry:
    before, after = was.position, then.position
    return LedgerEntry(
        block=then.block_number,
        timestamp=then.at_s,
        size=amount(after.size_units - before.size_units),
        initial_value=amount(after.cost_units - before.cost_units),
        total_bought=amount(after.bought_units - before.bought_units),
        total_bought_usdc=amount(after.spent_units - before.spent_units),
        realized_pnl=amount(after.realized_units - before.realized_units),
        activities=[
            LedgerAct(
                type=act.kind.value,
                side=None if act.side is None else act.side.name,
                size=amount(act.size_units),
                usdc_size=amount(act.cost_units),
                transaction_hash=act.tx_hash,
            )
            for act in acts
        ],
    )


def _figures(position: Position) -> LedgerFigures:
    return LedgerFigures(
        size=amount(position.size_units),
        initial_value=amount(position.cost_units),
        total_bought=amount(position.bought_units),
        total_bought_usdc=amount(position.spent_units),
        realized_pnl=amount(position.realized_units),
    )
