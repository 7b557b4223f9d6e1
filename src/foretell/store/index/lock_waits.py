"""Bounds for transactions that wait for each other on PostgreSQL, such as those of indexing and of a rebuild.

SQLite locks no rows: it has one writer, and `sqlite.transactions` bounds the wait for it.
"""

from typing import Final

import sqlalchemy as sa

from foretell.store.database import Transaction

LOCK_S: Final = 10.0
"""How long a transaction waits for a lock."""
IDLE_S_MAX: Final = 30.0
"""How long a process may do nothing in a transaction: one that is stopped does not hold its locks for ever."""


async def bound_waits(tx: Transaction) -> None:
    """Bound how long this transaction waits for a lock, and how long others wait if its process stops.

    A lock that is not given in time raises RowsLocked. PostgreSQL ends a transaction that is idle for too long, and what
    is run in it afterwards raises StoreUnavailable.
    """
    if tx.dialect == "postgresql":
        bounds = (("lock_timeout", LOCK_S), ("idle_in_transaction_session_timeout", IDLE_S_MAX))
        await tx.all(
            sa.select(
                *(
                    sa.func.set_config(name, str(round(1000 * seconds)), sa.true())
                    for name, seconds in bounds
                )
            )
        )


async def hold_lock(tx: Transaction, lock: int) -> None:
    """Hold a lock until the commit, which no other transaction then holds: SQLite has one writer anyway.

    Raises RowsLocked when another one has it for too long.
    """
    if tx.dialect == "postgresql":
        await bound_waits(tx)
        await tx.execute(sa.select(sa.func.pg_advisory_xact_lock(lock)))
