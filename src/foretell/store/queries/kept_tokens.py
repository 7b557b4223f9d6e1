"""Tokens that exchanges keep, of those that a wallet ever had a position in."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.queries.captions import LISTED, MarketCaption, caption_of
from foretell.store.tables import balances, conditions, events, markets, positions


class KeptToken(NamedTuple):
    """A token that an exchange has some of, for whichever wallet; `listing` is None without a market."""

    exchange: Address
    token_id: AssetId
    condition_id: Bytes32
    is_yes: bool
    listing: MarketCaption | None


async def load_kept_tokens(
    tx: Transaction, wallet: Address, exchanges: Collection[Address], after: str, limit: int
) -> Sequence[KeptToken]:
    """Return the kept tokens after a token id, in the order of their ids.

    A refused delivery is a purchase and a transfer away, so that its wallet has a position of the token.
    """
    rows = await tx.all(
        sa.select(
            balances.c.wallet.label("exchange"),
            positions.c.token_id,
            positions.c.condition_id,
            conditions.c.token_yes,
            *LISTED,
        )
        .select_from(positions)
        .join(balances, balances.c.asset == positions.c.token_id)
        .join(conditions, conditions.c.condition_id == positions.c.condition_id)
        .outerjoin(markets, markets.c.condition_id == positions.c.condition_id)
        .outerjoin(events, events.c.event_id == markets.c.event_id)
        .where(
            positions.c.wallet == wallet,
            positions.c.token_id > after,
            balances.c.wallet.in_(sorted(exchanges)),
            balances.c.units > 0,
        )
        .order_by(positions.c.token_id, balances.c.wallet)
        .limit(limit)
    )
    return [
        KeptToken(
            exchange=Address(row.exchange),
            token_id=AssetId(row.token_id),
            condition_id=Bytes32(row.condition_id),
            is_yes=row.token_id == row.token_yes,
            listing=caption_of(row),
        )
        for row in rows
    ]
