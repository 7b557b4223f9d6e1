"""Trades of the wallets that an address referred, and the fees that it shares, summed when they are asked for.

They are read from the chain's fills, so a reorganization takes back what it takes back of those.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.activities import ActivityKind
from foretell.store.queries.fee_shares import shares_of
from foretell.store.tables import activities, markets, referred_wallets
from foretell.store.wide_sums import read_wide, wide_sum


class ReferralFilter(NamedTuple):
    """A receiver of shares with its code as a builder, and what to sum; None matches every value.

    Without a token, volumes are of all tokens, and shares are of fees in collateral.
    """

    receiver: Address
    builder_code: Bytes32
    exchange: Address | None = None
    token_id: str | None = None


class ReceivedShares(NamedTuple):
    """The collateral of referred trades on an exchange, the shares of fees, and the time of the last trade."""

    exchange: Address
    volume_units: int
    share_units: int
    updated_at_s: int


async def load_received_shares(
    tx: Transaction, wanted: ReferralFilter, limit: int, offset: int
) -> Sequence[ReceivedShares]:
    """Return the sums of each exchange, the latest first."""
    shares = shares_of(wanted.receiver, wanted.builder_code).subquery().c
    earned = sa.select(
        shares.exchange,
        sa.literal(0).label("volume"),
        shares.units.label("share"),
        shares.timestamp_s,
    ).where(shares.asset == (wanted.token_id or COLLATERAL))
    parts = sa.union_all(_referred(wanted), earned).subquery()
    volume, share = wide_sum(parts.c.volume), wide_sum(parts.c.share)
    latest = sa.func.max(parts.c.timestamp_s)
    query = (
        sa.select(
            parts.c.exchange, volume.label("volume"), share.label("share"), latest.label("latest")
        )
        .group_by(parts.c.exchange)
        .order_by(latest.desc(), parts.c.exchange)
    )
    if wanted.exchange is not None:
        query = query.where(parts.c.exchange == wanted.exchange)
    rows = await tx.all(query.limit(limit).offset(offset))
    return [
        ReceivedShares(
            Address(row.exchange), read_wide(row.volume), read_wide(row.share), row.latest
        )
        for row in rows
    ]


def _referred(wanted: ReferralFilter) -> sa.Select[Any]:
    """Return the trades of referred wallets since their referral."""
    query = (
        sa.select(
            markets.c.exchange,
            activities.c.cost_units.label("volume"),
            sa.literal(0).label("share"),
            activities.c.timestamp_s,
        )
        .select_from(referred_wallets)
        .join(activities, activities.c.wallet == referred_wallets.c.wallet)
        .join(markets, markets.c.condition_id == activities.c.condition_id)
        .where(
            referred_wallets.c.referrer == wanted.receiver,
            activities.c.kind == ActivityKind.TRADE.value,
            activities.c.timestamp_s >= referred_wallets.c.from_s,
        )
    )
    if wanted.token_id is not None:
        query = query.where(activities.c.token_id == wanted.token_id)
    return query
