"""Builders: their keys, the rates of their fees, and their volumes; who referred a wallet, and the rates of referrers' shares.

`builder_keys` and `referred_wallets` are written by trading, the rates by the operator's commands, and the volumes
(`builder_days`, `builder_users`, `builder_totals`) by the engine. While `foretell index rebuild` adds these up again, both
write the tables with the prefix `next_`, and no other process reads them.
"""

from typing import Any, Final

import sqlalchemy as sa

from foretell.store.tables.columns import flag, integer, key, metadata, text

builder_keys: Final = sa.Table(
    "builder_keys",
    metadata,
    key("key_id"),
    text("address"),
    text("salt"),
    integer("created_at_ms"),
    integer("deleted_at_ms", nullable=True),
    sa.Index(None, "address"),
)

builder_rates: Final = sa.Table(
    "builder_rates",
    metadata,
    key("builder_code"),
    key("from_ms", sa.BigInteger),
    integer("taker_share_bps"),
    integer("maker_flat_bps"),
)

referred_wallets: Final = sa.Table(
    "referred_wallets",
    metadata,
    key("wallet"),
    text("referrer"),
    integer("from_s"),
    sa.Index(None, "referrer"),
)

referral_rates: Final = sa.Table(
    "referral_rates",
    metadata,
    key("from_ms", sa.BigInteger),
    integer("share_bps"),
)


def _volume() -> tuple[sa.Column[Any], ...]:
    """Return the columns of a volume, `volume_high` times 2^32 plus `volume_low`, and of its fills."""
    return integer("volume_high"), integer("volume_low"), integer("fills")


def _day_sums() -> tuple[sa.Column[Any], ...]:
    days = key("builder_code"), key("day", sa.BigInteger)
    return *days, *_volume(), integer("users"), integer("last_users")


def _user_days() -> tuple[sa.Column[Any], ...]:
    return key("builder_code"), key("wallet"), key("day", sa.BigInteger), integer("fills")


def _totals() -> tuple[sa.Column[Any], ...]:
    return key("builder_code"), *_volume(), integer("users")


builder_days: Final = sa.Table(
    "builder_days",
    metadata,
    *_day_sums(),
    sa.Index(None, "day", "volume_high", "volume_low", "builder_code"),
)
"""What the orders of a builder traded on a day, counted from 1970 in UTC, and without what has failed to settle.

`users` are the wallets of those orders; `last_users` those of them without a later day of the same builder. So the
wallets since a day are a sum of `last_users`.
"""

builder_users: Final = sa.Table("builder_users", metadata, *_user_days())
"""The days on which a wallet traded with orders of a builder."""

builder_totals: Final = sa.Table(
    "builder_totals",
    metadata,
    *_totals(),
    sa.Index(None, "volume_high", "volume_low", "builder_code"),
)
"""What the orders of a builder have traded on all days, and the wallets of them."""

next_builder_days: Final = sa.Table("next_builder_days", metadata, *_day_sums())
next_builder_users: Final = sa.Table("next_builder_users", metadata, *_user_days())
next_builder_totals: Final = sa.Table("next_builder_totals", metadata, *_totals())

builder_recounts: Final = sa.Table(
    "builder_recounts",
    metadata,
    key("name"),
    text("condition_id"),
    integer("matched_at_ms"),
    integer("sequence"),
    flag("is_complete"),
)
"""The place of the last trade that the `next_` tables have, or that they have all: one row while they are kept.

Places are in the order of markets, and within one in that of matches. The parts of a trade that is split keep its place.
"""
