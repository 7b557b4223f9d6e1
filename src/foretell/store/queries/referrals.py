"""Trades of the wallets that an address referred, and the fees that it shares, summed when they are asked for.

The volume of a wallet since its referral is a difference of two running volumes, which the indexer keeps
(`store/index/traded_volumes.py`): a read costs what the number of referred wallets and exchanges costs, however often they
traded. Trades of one token are added up one by one, as are all trades of a wallet with one in a market that was listed
later. Shares are read from the chain's fills. So a reorganization takes back what it takes back of those.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.activities import ActivityKind
from foretell.store.index.generations import load_live
from foretell.store.index.traded_volumes import UNLISTED
from foretell.store.index.trading_totals import tables_of
from foretell.store.queries.fee_shares import shares_of
from foretell.store.tables import activities, conditions, markets, referred_wallets
from foretell.store.trading.builder_days import has_orders
from foretell.store.wide_sums import high_half, low_half, read_wide, sum_of_halves, wide_sum


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
    volumes = tables_of(await load_live(tx)).volumes
    has_token, has_exchange = wanted.token_id is not None, wanted.exchange is not None
    is_builder = await has_orders(tx, wanted.builder_code)
    statement = _received(
        volumes, has_token=has_token, has_exchange=has_exchange, is_builder=is_builder
    )
    asked = {
        "receiver": wanted.receiver,
        "asset": wanted.token_id or COLLATERAL,
        "rows": limit,
        "passed": offset,
    }
    if is_builder:
        asked["builder_code"] = wanted.builder_code
    if has_exchange:
        asked["exchange"] = wanted.exchange
    return [
        ReceivedShares(
            Address(row.exchange), read_wide(row.volume), read_wide(row.share), row.latest
        )
        for row in await tx.all(statement, asked)
    ]


_RECEIVER: Final = sa.bindparam("receiver", type_=sa.Text)
_ASSET: Final = sa.bindparam("asset", type_=sa.Text)
_UNLISTED: Final = sa.literal(UNLISTED, sa.Text, literal_execute=True)
"""No parameter: PostgreSQL plans again for each read if it cannot know how rare this exchange is."""


@lru_cache
def _received(
    volumes: sa.Table, *, has_token: bool, has_exchange: bool, is_builder: bool
) -> sa.Select[Any]:
    """Return the query with a generation's volumes, built once: that takes longer than running it.

    With the orders of a builder PostgreSQL plans it again for each read, as it cannot know how many there are.
    """
    code = sa.bindparam("builder_code", type_=sa.Text) if is_builder else None
    shares = shares_of(_RECEIVER, code).subquery().c
    earned = sa.select(
        shares.exchange,
        sa.literal(0).label("high"),
        sa.literal(0).label("low"),
        shares.units.label("share"),
        shares.timestamp_s,
    ).where(shares.asset == _ASSET)
    traded = [_single_trades(volumes, has_token=has_token)]
    if not has_token:
        traded.append(_kept_volumes(volumes))
    parts = sa.union_all(*traded, earned).subquery()
    latest = sa.func.max(parts.c.timestamp_s)
    query = (
        sa.select(
            parts.c.exchange,
            sum_of_halves(parts.c.high, parts.c.low).label("volume"),
            wide_sum(parts.c.share).label("share"),
            latest.label("latest"),
        )
        .group_by(parts.c.exchange)
        .order_by(latest.desc(), parts.c.exchange)
        .limit(sa.bindparam("rows", type_=sa.BigInteger))
        .offset(sa.bindparam("passed", type_=sa.BigInteger))
    )
    if has_exchange:
        query = query.where(parts.c.exchange == sa.bindparam("exchange", type_=sa.Text))
    return query


def _single_trades(volumes: sa.Table, *, has_token: bool) -> sa.Select[Any]:
    """Return referred trades of one token, or all of the wallets that have a volume on no known exchange; halves of units."""
    query = (
        sa.select(
            markets.c.exchange,
            high_half(activities.c.cost_units).label("high"),
            low_half(activities.c.cost_units).label("low"),
            sa.literal(0).label("share"),
            activities.c.timestamp_s,
        )
        .select_from(referred_wallets)
        .join(activities, activities.c.wallet == referred_wallets.c.wallet)
        .join(markets, markets.c.condition_id == activities.c.condition_id)
        .where(
            referred_wallets.c.referrer == _RECEIVER,
            activities.c.kind == ActivityKind.TRADE.value,
            activities.c.timestamp_s >= referred_wallets.c.from_s,
        )
    )
    if not has_token:
        unlisted = volumes.alias("unlisted")
        is_unlisted = (
            unlisted.c.wallet == referred_wallets.c.wallet,
            unlisted.c.exchange == _UNLISTED,
        )
        return query.where(sa.exists().where(*is_unlisted))
    is_of_token = sa.or_(conditions.c.token_yes == _ASSET, conditions.c.token_no == _ASSET)
    condition_id = sa.select(conditions.c.condition_id).where(is_of_token).scalar_subquery()
    return query.where(activities.c.condition_id == condition_id, activities.c.token_id == _ASSET)


def _kept_volumes(volumes: sa.Table) -> sa.Select[Any]:
    """Return the difference of two running volumes for each referred wallet and exchange.

    Each exchange of a wallet is found behind the one before, each volume at the end of a range of the primary key.
    """
    since = _exchanges_of_referred(volumes)
    held = volumes.alias("held")
    last = sa.select(sa.func.max(held.c.block_number)).where(
        held.c.wallet == since.c.wallet, held.c.exchange == since.c.exchange
    )
    seen = (
        sa.select(
            since,
            last.scalar_subquery().label("last_block"),
            last.where(held.c.block_number < since.c.first_block)
            .scalar_subquery()
            .label("block_before"),
        )
        .where(since.c.exchange != _UNLISTED)
        .cte("seen")
    )
    now, before = volumes.alias("now"), volumes.alias("before")

    def is_at(volume: sa.FromClause, block: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
        return sa.and_(
            volume.c.wallet == seen.c.wallet,
            volume.c.exchange == seen.c.exchange,
            volume.c.block_number == block,
        )

    return (
        sa.select(
            seen.c.exchange,
            (now.c.volume_high - sa.func.coalesce(before.c.volume_high, 0)).label("high"),
            (now.c.volume_low - sa.func.coalesce(before.c.volume_low, 0)).label("low"),
            sa.literal(0).label("share"),
            now.c.traded_at_s.label("timestamp_s"),
        )
        .select_from(seen)
        .join(now, is_at(now, seen.c.last_block))
        .outerjoin(before, is_at(before, seen.c.block_before))
        .where(seen.c.last_block >= seen.c.first_block)
    )


def _exchanges_of_referred(volumes: sa.Table) -> sa.CTE:
    """Return the referred wallets, the first block of each since its referral with an activity, and its exchanges.

    Times never decrease from block to block, so a wallet's trades since then are those from that block on. The exchanges of
    a wallet that has trades on none that is known begin with that one, and end with it.
    """
    first_block = (
        sa.select(activities.c.block_number)
        .where(
            activities.c.wallet == referred_wallets.c.wallet,
            activities.c.timestamp_s >= referred_wallets.c.from_s,
        )
        .order_by(activities.c.timestamp_s, activities.c.block_number)
        .limit(1)
    )
    own = volumes.alias("own")
    first = sa.select(sa.func.min(own.c.exchange)).where(own.c.wallet == referred_wallets.c.wallet)
    found = (
        sa.select(
            referred_wallets.c.wallet,
            first_block.scalar_subquery().label("first_block"),
            first.scalar_subquery().label("exchange"),
        )
        .where(referred_wallets.c.referrer == _RECEIVER)
        .cte("since", recursive=True)
    )
    following = sa.select(sa.func.min(own.c.exchange)).where(
        own.c.wallet == found.c.wallet, own.c.exchange > found.c.exchange
    )
    return found.union_all(
        sa.select(
            found.c.wallet, found.c.first_block, following.scalar_subquery().label("exchange")
        ).where(found.c.exchange != _UNLISTED, found.c.first_block.is_not(None))
    )
