"""Keep what conversions have released of each question, and have open interest count nothing else that was burned.

The open interest of a question that ended with Yes had No tokens that wallets had sent to the burn address
themselves, and lacked what was converted after the end. Since the end it is what all wallets together hold of
Yes, so it is added up from their balances.
"""

import itertools
from collections.abc import Iterable, Iterator

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"

BURN = "0xa5ef39c3d3e10d0b270233af41cac69796b12966"
"""Receives the No tokens of conversions."""
MOST = 2**63 - 1
ROWS_PER_STEP = 10_000

States = Iterable[tuple[str, int, int]]
"""Conditions, units and blocks."""


def upgrade() -> None:
    """Add the tables, and fill them with what older rows show."""
    op.create_table(
        "released_collateral",
        sa.Column("condition_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("units", sa.BigInteger(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("condition_id", name=op.f("pk_released_collateral")),
    )
    op.create_table(
        "released_collateral_changes",
        sa.Column("condition_id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("units", sa.BigInteger(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint(
            "condition_id", "block_number", name=op.f("pk_released_collateral_changes")
        ),
    )
    for table in ("released_collateral", "released_collateral_changes"):
        op.create_index(op.f(f"ix_{table}_block_number"), table, ["block_number"])
    fill()


def fill() -> None:
    """Add up what conversions released, and correct the open interest of questions that ended with Yes."""
    _insert("released_collateral_changes", _released())
    op.execute(_NEWEST.format(table="released_collateral", is_wanted="1 = 1"))
    for ended in op.get_bind().execute(_ENDED).all():
        condition = {"condition": ended.condition_id}
        since = condition | {"ended": ended.block_number}
        op.get_bind().execute(_FORGET, since)
        before = op.get_bind().scalar(_UNITS_BEFORE, condition) or 0
        since_the_end = _locked(ended.token_yes, ended.block_number, before)
        _insert(
            "locked_collateral_changes",
            ((ended.condition_id, units, block) for units, block in since_the_end),
        )
        op.get_bind().execute(_FORGET_NEWEST, condition)
        newest = _NEWEST.format(table="locked_collateral", is_wanted="condition_id = :condition")
        op.get_bind().execute(sa.text(newest), condition)


_CONVERTED = sa.text(
    """
    SELECT c.condition_id, a.block_number, a.size_units - a.cost_units AS units
    FROM activities AS a
    JOIN conditions AS given ON given.condition_id = a.condition_id
    JOIN balance_changes AS burned
        ON burned.block_number = a.block_number AND burned.wallet = :burn
    JOIN conditions AS c ON c.token_no = burned.asset AND c.oracle = given.oracle
        AND substr(c.question_id, 1, 64) = substr(given.question_id, 1, 64)
    LEFT JOIN payouts AS p ON p.condition_id = c.condition_id AND p.payout_yes > 0
    WHERE a.kind = 'CONVERSION' AND (p.condition_id IS NULL OR p.block_number > a.block_number
        OR (p.block_number = a.block_number AND p.log_index > a.log_index))
    ORDER BY c.condition_id, a.block_number
    """
).bindparams(burn=BURN)
"""Conversions, each with the questions whose No it burned: the tokens given less the collateral paid, of every one."""

_ENDED = sa.text(
    """
    SELECT c.condition_id, c.token_yes, p.block_number
    FROM balances AS burned JOIN conditions AS c ON c.token_no = burned.asset
    JOIN payouts AS p ON p.condition_id = c.condition_id
    LEFT JOIN released_collateral AS released ON released.condition_id = c.condition_id
    WHERE burned.wallet = :burn AND p.payout_yes > 0 AND p.payout_no = 0
        AND burned.units <> coalesce(released.units, 0)
    """
).bindparams(burn=BURN)
"""Conditions that ended with Yes and of whose No something else was burned, or later."""

_HELD = sa.text(
    """
    SELECT held.wallet, held.units, held.block_number
    FROM balances AS now
    JOIN balance_changes AS held ON held.wallet = now.wallet AND held.asset = now.asset
    WHERE now.asset = :token ORDER BY held.block_number
    """
)
_FORGET = sa.text(
    "DELETE FROM locked_collateral_changes"
    " WHERE condition_id = :condition AND block_number >= :ended"
)
_UNITS_BEFORE = sa.text(
    "SELECT units FROM locked_collateral_changes WHERE condition_id = :condition"
    " ORDER BY block_number DESC LIMIT 1"
)
_FORGET_NEWEST = sa.text("DELETE FROM locked_collateral WHERE condition_id = :condition")
_NEWEST = """
    INSERT INTO {table} (condition_id, units, block_number)
    SELECT condition_id, units, block_number FROM {table}_changes AS newest
    WHERE {is_wanted} AND block_number = (
        SELECT max(block_number) FROM {table}_changes AS other
        WHERE other.condition_id = newest.condition_id
    )
"""


def _released() -> Iterator[tuple[str, int, int]]:
    """Yield what conversions have released of each condition after the blocks with any."""
    rows = op.get_bind().execute(_CONVERTED)
    for condition_id, of_condition in itertools.groupby(rows, lambda row: row.condition_id):
        units = 0
        for block, of_block in itertools.groupby(of_condition, lambda row: row.block_number):
            units = min(MOST, units + sum(row.units for row in of_block))
            yield condition_id, units, block


def _locked(token: str, first_block: int, before: int) -> Iterator[tuple[int, int]]:
    """Yield what is held of Yes, and the block, after each that changed it from the end of the condition on."""
    for units, block in _held(token, first_block):
        if units != before:
            yield units, block
        before = units


def _held(token: str, first_block: int) -> Iterator[tuple[int, int]]:
    """Yield what all wallets held of a token after a block, and after each later one with changes."""
    units_by_wallet: dict[str, int] = {}
    total, block = 0, first_block
    for wallet, units, changed_block in op.get_bind().execute(_HELD, {"token": token}):
        if changed_block > block:
            yield min(MOST, total), block
            block = changed_block
        total += units - units_by_wallet.get(wallet, 0)
        units_by_wallet[wallet] = units
    yield min(MOST, total), block


def _insert(table: str, states: States) -> None:
    """Insert rows, so many in a step."""
    columns = ("condition_id", "units", "block_number")
    insertion = sa.table(table, *(sa.column(name) for name in columns)).insert()
    rows = iter(states)
    while part := list(itertools.islice(rows, ROWS_PER_STEP)):
        op.get_bind().execute(insertion, [dict(zip(columns, row, strict=True)) for row in part])
