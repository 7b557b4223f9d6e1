"""Prepared conditions, their tokens, and the payouts of their oracles; written by the indexer."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import Payout
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.lookups import load_rows
from foretell.store.many_rows import insert_many
from foretell.store.tables import conditions, payouts


class Condition(NamedTuple):
    """A question with its oracle, and its two outcome tokens in the deployment's collateral."""

    block_number: int
    log_index: int
    part: int
    condition_id: Bytes32
    oracle: Address
    question_id: Bytes32
    token_yes: AssetId
    token_no: AssetId


class PayoutReport(NamedTuple):
    """An oracle's final report."""

    block_number: int
    log_index: int
    part: int
    condition_id: Bytes32
    payout_yes: int
    payout_no: int
    tx_hash: Bytes32
    timestamp_s: int

    @property
    def payout(self) -> Payout:
        """The payout's numerators."""
        return Payout(self.payout_yes, self.payout_no)


async def record_conditions(tx: Transaction, prepared: Sequence[Condition]) -> None:
    """Store prepared conditions."""
    await insert_many(tx, conditions, prepared)


async def record_payouts(tx: Transaction, reports: Sequence[PayoutReport]) -> None:
    """Store reported payouts."""
    await tx.insert_rows(payouts, reports)


async def load_conditions(tx: Transaction, ids: Collection[Bytes32]) -> list[Condition]:
    """Return these conditions; those unknown to the chain are left out."""
    return await _load(tx, conditions.c.condition_id, ids)


async def load_conditions_of_tokens(tx: Transaction, ids: Collection[AssetId]) -> list[Condition]:
    """Return the conditions of these tokens, each once."""
    found = await _load(tx, conditions.c.token_yes, ids)
    found += await _load(tx, conditions.c.token_no, ids)
    return list(dict.fromkeys(found))


async def load_payouts(tx: Transaction, ids: Collection[Bytes32]) -> list[PayoutReport]:
    """Return the payouts of these conditions; a missing one is unresolved."""
    keys = [(condition_id,) for condition_id in ids]
    rows = await load_rows(tx, payouts, [payouts.c.condition_id], keys)
    return [PayoutReport._make(row) for row in rows]


async def load_payouts_since(tx: Transaction, block_number: int) -> list[PayoutReport]:
    """Return the payouts after a block."""
    query = sa.select(payouts).where(payouts.c.block_number > block_number)
    return [PayoutReport._make(row) for row in await tx.all(query)]


async def _load(tx: Transaction, column: sa.Column[str], ids: Collection[str]) -> list[Condition]:
    rows = await load_rows(tx, conditions, [column], [(one,) for one in ids])
    return [Condition._make(row) for row in rows]
