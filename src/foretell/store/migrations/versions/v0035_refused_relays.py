"""Find what counts toward an owner's budgets, and the refused requests of old days, without walking the others.

A budget was checked by reading each request of its owner, the refused ones with their calldata included.
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """Give the states their times, and the requests that count an index that has all that is asked for."""
    op.drop_index(op.f("ix_relay_requests_state"), table_name="relay_requests")
    op.create_index(
        op.f("ix_relay_requests_state_updated_at_ms"), "relay_requests", ["state", "updated_at_ms"]
    )
    counted = sa.text("state <> 'STATE_INVALID'")
    op.create_index(
        "ix_relay_requests_counted",
        "relay_requests",
        ["owner", "created_at_ms", "gas", "state"],
        sqlite_where=counted,
        postgresql_where=counted,
    )
