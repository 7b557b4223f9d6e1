"""Tokens that exchanges keep, of those that a wallet ever had a position in."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.queries.captions import LISTED, MarketCaption, caption_of
from foretell.store.tables import balances, conditions, events, markets, positions


class KeptKey(NamedTuple):
    """What sets a kept token apart, as several exchanges may keep some of one."""

    token_id: AssetId
    exchange: Address


class KeptToken(NamedTuple):
    """A token that an exchange has some of, for whichever wallet; `listing` is None without a market."""

    exchange: Address
    token_id: AssetId
    condition_id: Bytes32
    is_yes: bool
    listing: MarketCaption | None

    @property
    def key(self) -> KeptKey:
        """What sets it apart."""
        return KeptKey(self.token_id, self.exchange)


async def load_kept_tokens(
    tx: Transaction,
    wallet: Address,
    exchanges: Collection[Address],
    after: KeptKey | None,
    limit: int,
) -> Sequence[KeptToken]:
    """Return the kept tokens after a key, in the order of token ids and exchanges.

    A refused delivery is a purchase and a transfer away, so that its wallet has a position of the token. All but the
    balances is outer joined: the database then looks up no condition of a position whose token no exchange has.
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
        .outerjoin(conditions, conditions.c.condition_id == positions.c.condition_id)
        .outerjoin(markets, markets.c.condition_id == positions.c.condition_id)
        .outerjoin(events, events.c.event_id == markets.c.event_id)
        .where(
            positions.c.wallet == wallet,
            *_behind(after),
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


def _behind(after: KeptKey | None) -> Sequence[sa.ColumnElement[bool]]:
    if after is None:
        return ()
    token_id = positions.c.token_id
    return (
        token_id >= after.token_id,
        sa.or_(token_id > after.token_id, balances.c.wallet > after.exchange),
    )
