"""The rows of one database, written to another: whatever wrote them, reads of both have one answer."""

import sqlalchemy as sa

from foretell.store.database import Database
from foretell.store.tables import metadata


async def copy_tables(source: Database, target: Database) -> None:
    """Write all rows of a database to another, which is empty."""
    for table in metadata.sorted_tables:
        async with source.reading() as tx:
            rows = await tx.all(sa.select(table))
        if rows:
            async with target.writing() as tx:
                await tx.execute(table.insert().values([row._asdict() for row in rows]))
