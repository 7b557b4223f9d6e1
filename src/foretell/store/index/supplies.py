"""The supply of each outcome token: what all wallets together hold of it, as of the last indexed block; written by the indexer.

It is the sum of the token's balances, which come from the logs of transfers. A supply may exceed a column of integers,
so it is kept as text. It has no history: an unwinding adds up the balances of the tokens that it has touched.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import sqlalchemy as sa

from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.store.database import Transaction
from foretell.store.lookups import load_rows
from foretell.store.many_rows import insert_many, upsert_many
from foretell.store.tables import balances, supplies
from foretell.store.wide_sums import read_wide, wide_sum

BEFORE_ALL_TOKENS: Final = AssetId("")
TOKENS_PER_SUM_MAX: Final = 500
"""The most tokens whose balances one query adds up."""


async def record_supplies(tx: Transaction, units_by_token: Mapping[AssetId, int]) -> None:
    """Store supplies in base units, those of each token in place of its last one."""
    rows = [(token, str(units)) for token, units in sorted(units_by_token.items())]
    if rows:
        await upsert_many(tx, supplies, rows)


async def load_supplies(tx: Transaction, token_ids: Iterable[AssetId]) -> Mapping[AssetId, int]:
    """Return the supplies of these tokens in base units; one that nobody has held is left out."""
    keys = [(token,) for token in token_ids]
    rows = await load_rows(tx, supplies, supplies.primary_key, keys)
    return {AssetId(row.token_id): int(row.units) for row in rows}


async def recount_supplies(tx: Transaction, token_ids: Collection[AssetId]) -> None:
    """Add up the balances of these tokens; one that nobody has held loses its row.

    The caller keeps other transactions from changing balances until its commit.
    """
    wanted = sorted(token_ids)
    for start in range(0, len(wanted), TOKENS_PER_SUM_MAX):
        part = wanted[start : start + TOKENS_PER_SUM_MAX]
        held = (
            sa.select(balances.c.asset, wide_sum(balances.c.units).label("units"))
            .where(balances.c.asset.in_(part))
            .group_by(balances.c.asset)
        )
        rows = [(row.asset, str(read_wide(row.units))) for row in await tx.all(held)]
        await tx.execute(supplies.delete().where(supplies.c.token_id.in_(part)))
        await insert_many(tx, supplies, rows)


async def load_tokens_changed(tx: Transaction, since_block: int) -> Sequence[AssetId]:
    """Return the tokens with balances that changed after this block."""
    is_changed = sa.and_(balances.c.block_number > since_block, balances.c.asset != COLLATERAL)
    rows = await tx.all(sa.select(balances.c.asset).where(is_changed).distinct())
    return [AssetId(row.asset) for row in rows]


async def load_next_tokens(tx: Transaction, after: AssetId, limit: int) -> Sequence[AssetId]:
    """Return the next tokens, in the order of their ids, that have a balance or a supply."""
    found: set[AssetId] = set()
    for column in (balances.c.asset, supplies.c.token_id):
        is_next = sa.and_(column > after, column != COLLATERAL)
        query = sa.select(column).where(is_next).distinct().order_by(column).limit(limit)
        found |= {AssetId(row[0]) for row in await tx.all(query)}
    return sorted(found)[:limit]
