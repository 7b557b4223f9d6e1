"""The identity of a database, which distinguishes it from other ones; written by a start."""

from typing import Final

import sqlalchemy as sa

from foretell.store.tables.columns import key, metadata, text

identity: Final = sa.Table("identity", metadata, key("name"), text("value"))
