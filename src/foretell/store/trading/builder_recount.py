"""The statements that add up the volumes of builders from orders, trades and fills, all at once.

A sum may exceed 63 bits, so its halves are added up apart.
"""

from typing import Final

import sqlalchemy as sa

_BROUGHT: Final = """
    WITH brought AS (
        SELECT o.attributed_code AS builder_code, t.taker AS wallet,
            t.matched_at_ms / 86400000 AS day, t.cost_units AS units,
            (SELECT count(*) FROM fills AS f WHERE f.trade_id = t.trade_id) AS fills
        FROM orders AS o JOIN trades AS t ON t.taker_order_id = o.order_id
        WHERE o.attributed_code IS NOT NULL AND t.status <> 'FAILED'
        UNION ALL
        SELECT o.attributed_code, f.maker, t.matched_at_ms / 86400000,
            CASE WHEN f.side = 'BUY' THEN f.making_units ELSE f.taking_units END, 1
        FROM orders AS o JOIN fills AS f ON f.maker_order_id = o.order_id
        JOIN trades AS t ON t.trade_id = f.trade_id
        WHERE o.attributed_code IS NOT NULL AND t.status <> 'FAILED'
    )
"""
"""What each order of a builder pays or receives in a trade."""

_USERS: Final = f"""
    {_BROUGHT}
    INSERT INTO builder_users (builder_code, wallet, day, fills)
    SELECT builder_code, wallet, day, sum(fills) FROM brought GROUP BY builder_code, wallet, day
"""  # noqa: S608 - text of this module alone

_DAYS: Final = f"""
    {_BROUGHT}, ended AS (
        SELECT builder_code, day, count(*) AS users FROM (
            SELECT builder_code, wallet, max(day) AS day FROM builder_users
            GROUP BY builder_code, wallet
        ) AS last_days GROUP BY builder_code, day
    )
    INSERT INTO builder_days
        (builder_code, day, volume_high, volume_low, fills, users, last_users)
    SELECT s.builder_code, s.day, s.high + (s.low >> 32), s.low & 4294967295, s.fills, s.users,
        coalesce(e.users, 0)
    FROM (
        SELECT builder_code, day, CAST(sum(units >> 32) AS BIGINT) AS high,
            CAST(sum(units & 4294967295) AS BIGINT) AS low, sum(fills) AS fills,
            count(DISTINCT wallet) AS users
        FROM brought GROUP BY builder_code, day
    ) AS s LEFT JOIN ended AS e ON e.builder_code = s.builder_code AND e.day = s.day
"""  # noqa: S608 - text of this module alone

_TOTALS: Final = """
    INSERT INTO builder_totals (builder_code, volume_high, volume_low, fills, users)
    SELECT s.builder_code, s.high + (s.low >> 32), s.low & 4294967295, s.fills, u.users
    FROM (
        SELECT builder_code, CAST(sum(volume_high) AS BIGINT) AS high,
            CAST(sum(volume_low) AS BIGINT) AS low, sum(fills) AS fills
        FROM builder_days GROUP BY builder_code
    ) AS s JOIN (
        SELECT builder_code, count(DISTINCT wallet) AS users
        FROM builder_users GROUP BY builder_code
    ) AS u ON u.builder_code = s.builder_code
"""

RECOUNT: Final = tuple(sa.text(each) for each in (_USERS, _DAYS, _TOTALS))
"""In this order, into empty tables."""
