"""The identity of a database, which distinguishes it from other ones; written by a start."""

from typing import Final

import sqlalchemy as sa

from foretell.store.tables.columns import integer, key, metadata, text

identity: Final = sa.Table("identity", metadata, key("name"), text("value"))

index_unwinds: Final = sa.Table(
    "index_unwinds", metadata, key("id", sa.BigInteger), integer("times")
)
"""One row: how often the index was taken back to an earlier block; written by the indexer."""
