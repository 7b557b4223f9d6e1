"""Tables in which the volumes of builders are added up again, beside those that are read."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"

VOLUME = ("volume_high", "volume_low", "fills")


def upgrade() -> None:
    """Add the tables, empty."""
    _create("next_builder_days", ("builder_code", "day"), (*VOLUME, "users", "last_users"))
    _create("next_builder_users", ("builder_code", "wallet", "day"), ("fills",))
    _create("next_builder_totals", ("builder_code",), (*VOLUME, "users"))
    op.create_table(
        "builder_recounts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("condition_id", sa.Text(), nullable=False),
        sa.Column("matched_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("is_complete", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_builder_recounts")),
    )


def _create(table: str, key: tuple[str, ...], values: tuple[str, ...]) -> None:
    kinds = {"day": sa.BigInteger()}
    op.create_table(
        table,
        *(
            sa.Column(name, kinds.get(name, sa.Text()), autoincrement=False, nullable=False)
            for name in key
        ),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in values),
        sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{table}")),
    )
