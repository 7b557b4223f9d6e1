"""Leases of rate limits, written by every process that serves an API."""

from typing import Final

import sqlalchemy as sa

from foretell.store.tables.columns import integer, key, metadata

rate_leases: Final = sa.Table(
    "rate_leases",
    metadata,
    key("quota"),
    key("process"),
    integer("leased"),
    integer("wanted"),
    integer("expires_at_ms"),
    sa.Index(None, "expires_at_ms"),
)
