"""Generations of the sums by wallet: the one that is read, and the next one while a rebuild computes it.

A rebuild computes the next generation beside the live one and then changes one row, `live`. A reader has that row and
the sums from one instant of the database, so it sees one generation. Who writes sums, or removes those that nobody
reads, holds the row until its commit, shared. The beginning of a rebuild, its swap and an unwinding have it alone.
All lock the row `live` before the row `next`, and none waits for either without end (`lock_waits`). A reorg unwinds
both generations. Written by the indexer.
"""

from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.errors.storage import SumsReplaced
from foretell.domain.portfolio.periods import Period
from foretell.store.database import Transaction
from foretell.store.index.blocks import BEFORE_ALL_BLOCKS
from foretell.store.index.lock_waits import bound_waits
from foretell.store.tables import sum_generations

LIVE: Final = "live"
NEXT: Final = "next"
NOT_BEGUN: Final = BEFORE_ALL_BLOCKS - 1
"""The block of a next generation whose tables may still have rows of one that was not finished."""
KEYS_PER_GENERATION: Final = 1_000
"""More than the days of the longest period: the keys of two generations never meet."""

LIVE_GENERATION: Final = (
    sa.select(sa.func.coalesce(sa.func.max(sum_generations.c.generation), 0))
    .where(sum_generations.c.name == LIVE)
    .scalar_subquery()
)
"""The live generation, as a part of a query."""
_OF_LIVE: Final = sa.select(sum_generations.c.generation).where(sum_generations.c.name == LIVE)


class RunningSum(NamedTuple):
    """A running sum of a generation."""

    generation: int
    period: Period

    @property
    def key(self) -> int:
        """The period as the tables have it."""
        return self.generation * KEYS_PER_GENERATION + int(self.period)

    @property
    def first(self) -> "RunningSum":
        """The sum up to now, of the same generation."""
        return self._replace(period=Period.ALL)


def sums_of(generation: int) -> dict[Period, RunningSum]:
    """Return the sums of a generation."""
    return {period: RunningSum(generation, period) for period in Period}


def live_key(days: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """Return the key of a period in the live generation, for a query."""
    return LIVE_GENERATION * sa.literal(KEYS_PER_GENERATION, sa.BigInteger) + days


def days_of(key: int) -> int:
    """Return the days of the period that a key stands for."""
    return key % KEYS_PER_GENERATION


def of_generation(table: sa.Table, generation: int) -> sa.ColumnElement[bool]:
    """Return the condition that a row of sums is of a generation; a table without periods has but one."""
    if "period" not in table.c:
        return sa.true()
    first = generation * KEYS_PER_GENERATION
    return sa.and_(table.c.period >= first, table.c.period < first + KEYS_PER_GENERATION)


class NextGeneration(NamedTuple):
    """The generation that is computed, and the last block that its totals of wallets have."""

    generation: int
    block_number: int


class KeptGenerations(NamedTuple):
    """The live generation, and the next one while a rebuild computes it."""

    live: int
    following: NextGeneration | None

    @property
    def numbers(self) -> list[int]:
        """The generations whose rows stay."""
        return [self.live] if self.following is None else [self.live, self.following.generation]


async def load_live(tx: Transaction) -> int:
    """Return the generation that readers see."""
    return int(await tx.scalar(_OF_LIVE) or 0)


async def hold_live(tx: Transaction) -> int:
    """Return the live generation, which stays so until this transaction ends."""
    await bound_waits(tx)
    return await _lock_live(tx, is_shared=True)


async def load_next(tx: Transaction) -> NextGeneration | None:
    """Return the generation that a rebuild computes, if there is one; nobody else has it until the commit."""
    await bound_waits(tx)
    return await _lock_next(tx, is_shared=False)


async def hold_kept(tx: Transaction) -> KeptGenerations:
    """Return the live generation and the next one; both stay so until the commit, and others may write to them."""
    return KeptGenerations(await hold_live(tx), await _lock_next(tx, is_shared=True))


async def load_kept(tx: Transaction) -> KeptGenerations:
    """Return the live generation and the next one; nobody else has either until the commit."""
    await bound_waits(tx)
    live = await _lock_live(tx, is_shared=False)
    return KeptGenerations(live, await _lock_next(tx, is_shared=False))


async def _lock_live(tx: Transaction, *, is_shared: bool) -> int:
    return int(await tx.scalar(_OF_LIVE.with_for_update(read=is_shared)) or 0)


async def _lock_next(tx: Transaction, *, is_shared: bool) -> NextGeneration | None:
    is_next = sum_generations.c.name == NEXT
    row = await tx.first(sa.select(sum_generations).where(is_next).with_for_update(read=is_shared))
    return None if row is None else NextGeneration(row.generation, row.block_number)


async def hold_generation(tx: Transaction, generation: int) -> None:
    """Keep a generation until this transaction ends.

    Raises SumsReplaced if it is neither live nor computed any more.
    """
    await bound_waits(tx)
    is_own = sum_generations.c.generation == generation
    own = sa.select(sum_generations.c.name).where(is_own).with_for_update(read=True)
    if await tx.first(own) is None and generation != await load_live(tx):
        raise SumsReplaced(generation)


async def begin_next(tx: Transaction) -> int:
    """Have a new generation computed in place of one that was not finished, and return its number.

    Its totals have other tables than the live ones. No removal that does not know it is under way.
    """
    await bound_waits(tx)
    await tx.insert_new(sum_generations, name=LIVE, generation=0, block_number=BEFORE_ALL_BLOCKS)
    live, unfinished = await load_kept(tx)
    generation = live + 1 if unfinished is None else unfinished.generation + 2
    await record_next(tx, NextGeneration(generation, NOT_BEGUN))
    return generation


async def record_next(tx: Transaction, following: NextGeneration) -> None:
    """Store how far the totals of the next generation have come."""
    await tx.upsert_rows(sum_generations, [(NEXT, *following)])


async def make_live(tx: Transaction, generation: int) -> None:
    """Have readers see the next generation from the commit on."""
    await tx.upsert_rows(sum_generations, [(LIVE, generation, BEFORE_ALL_BLOCKS)])
    await tx.execute(sum_generations.delete().where(sum_generations.c.name == NEXT))


async def unwind_next(tx: Transaction, block_number: int) -> None:
    """Note that the totals of the next generation were restored as they were after a block."""
    await tx.execute(
        sum_generations.update()
        .where(sum_generations.c.name == NEXT, sum_generations.c.block_number > block_number)
        .values(block_number=block_number)
    )
