"""Find profiles by the beginning of their names: PostgreSQL sorts the keys of names by code points, too."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Change the order of the column and of its unique index; SQLite has no other."""
    if op.get_context().dialect.name == "postgresql":
        sorted_text = postgresql.TEXT(collation="C")
        op.alter_column("profiles", "name_key", existing_type=sa.Text(), type_=sorted_text)
