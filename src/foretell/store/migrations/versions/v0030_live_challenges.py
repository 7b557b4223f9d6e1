"""Count the challenges that can still be signed in an index: with many expired ones, each count read all their rows."""

from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Give the index of the sources the end of the challenges, and all challenges an index by it."""
    op.drop_index(op.f("ix_requests_status_source"), table_name="requests")
    for columns in (["status", "source", "expires_at_ms"], ["status", "expires_at_ms"]):
        op.create_index(op.f(f"ix_requests_{'_'.join(columns)}"), "requests", columns)
