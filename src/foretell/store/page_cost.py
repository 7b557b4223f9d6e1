"""The cost of a page that PostgreSQL's planner reckons with.

The store finds rows by keys, and most of their pages are in memory. With the default, which is that of a disk that
seeks, the planner reads all markets instead of a hundred of them, and all activities instead of a wallet's.
"""

from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import ConnectionPoolEntry

RANDOM_PAGE_COST: Final = 1.1
"""Times the cost of the next page of a sequence."""


def with_cheap_pages(engine: AsyncEngine) -> AsyncEngine:
    """Return the engine, whose connections plan with this cost."""

    @sa.event.listens_for(engine.sync_engine, "connect")
    def _configure(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SET random_page_cost = {RANDOM_PAGE_COST}")
        cursor.close()
        connection.commit()

    return engine
