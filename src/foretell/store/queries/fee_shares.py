"""Fees that the exchange charged on the chain, divided among builders, referrers and the operator.

They are computed from the fills of the index when they are asked for, so a reorganization takes back what it takes back
of those. The division is that of `domain.portfolio.fee_shares`, in SQL; no product exceeds 64 bits.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.fee_shares import BPS, FeeShares
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.tables import (
    activities,
    builder_rates,
    exchange_fills,
    markets,
    orders,
    referral_rates,
    referred_wallets,
)
from foretell.store.tables.indexing import IS_CHARGED
from foretell.store.wide_sums import read_wide, wide_sum


class ReferralRate(NamedTuple):
    """The share of referrers in what builders leave of a fee, from a time on."""

    from_ms: int
    share_bps: int


class FeeTotals(NamedTuple):
    """The fees of an exchange in one asset, and their parts."""

    exchange: Address
    asset: AssetId
    fee_units: int
    shares: FeeShares


async def record_referral_rate(tx: Transaction, rate: ReferralRate) -> None:
    """Store a rate that is in force from its time on; it is never changed."""
    await tx.execute(referral_rates.insert().values(rate._asdict()))


async def load_referral_rates(tx: Transaction) -> Sequence[ReferralRate]:
    """Return all rates of referrers, in order of their times."""
    rows = await tx.all(sa.select(referral_rates).order_by(referral_rates.c.from_ms))
    return [ReferralRate(row.from_ms, row.share_bps) for row in rows]


async def load_fee_totals(tx: Transaction) -> Sequence[FeeTotals]:
    """Return the fees of each exchange and asset; the parts are the fees, to the unit."""
    shared = shared_fees(sa.true())
    columns = shared.c
    rows = await tx.all(
        sa.select(
            columns.exchange,
            columns.asset,
            wide_sum(columns.fee_units).label("fee"),
            wide_sum(columns.builder_units).label("builders"),
            wide_sum(columns.referrer_units).label("referrers"),
        )
        .group_by(columns.exchange, columns.asset)
        .order_by(columns.exchange, columns.asset)
    )
    return [_totals(row) for row in rows]


def shared_fees(is_wanted: sa.ColumnElement[bool]) -> sa.Subquery:
    """Return the parts of each charged fee whose fill, order or referral is wanted.

    The columns are exchange, asset, timestamp_s, builder_code, referrer, fee_units, builder_units and referrer_units.
    """
    charged = _charged_fees(is_wanted).subquery()
    builder_units = _part(charged.c.fee_units, charged.c.builder_bps)
    built = sa.select(charged, builder_units.label("builder_units")).subquery()
    left_units = built.c.fee_units - built.c.builder_units
    referrer_units = _part(left_units, built.c.referrer_bps)
    return sa.select(built, referrer_units.label("referrer_units")).subquery()


def _charged_fees(is_wanted: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Return each charged fee with the rates that were in force at the time of its block."""
    fills, trades = exchange_fills.c, activities.c
    at_ms = trades.timestamp_s * 1_000
    builder_bps = (
        sa.select(builder_rates.c.taker_share_bps)
        .where(
            builder_rates.c.builder_code == orders.c.attributed_code,
            builder_rates.c.from_ms <= at_ms,
        )
        .order_by(builder_rates.c.from_ms.desc())
        .limit(1)
        .scalar_subquery()
    )
    referrer_bps = (
        sa.select(referral_rates.c.share_bps)
        .where(referral_rates.c.from_ms <= at_ms)
        .order_by(referral_rates.c.from_ms.desc())
        .limit(1)
        .scalar_subquery()
    )
    is_same_fill = sa.and_(
        trades.block_number == fills.block_number,
        trades.log_index == fills.log_index,
        trades.part == fills.part,
    )
    is_referred = sa.and_(
        referred_wallets.c.wallet == fills.wallet, referred_wallets.c.from_s <= trades.timestamp_s
    )
    return (
        sa.select(
            markets.c.exchange,
            sa.case((fills.side == Side.BUY.name, fills.token_id), else_=COLLATERAL).label("asset"),
            trades.timestamp_s,
            orders.c.attributed_code.label("builder_code"),
            referred_wallets.c.referrer,
            fills.fee_units,
            sa.case((fills.is_taker, sa.func.coalesce(builder_bps, 0)), else_=0).label(
                "builder_bps"
            ),
            sa.case(
                (referred_wallets.c.referrer.is_not(None), sa.func.coalesce(referrer_bps, 0)),
                else_=0,
            ).label("referrer_bps"),
        )
        .select_from(exchange_fills)
        .join(activities, is_same_fill)
        .join(markets, markets.c.condition_id == trades.condition_id)
        .outerjoin(orders, orders.c.order_id == fills.order_id)
        .outerjoin(referred_wallets, is_referred)
        .where(IS_CHARGED, is_wanted)
    )


def shares_of(address: sa.ColumnElement[str], code: sa.ColumnElement[str] | None) -> sa.Select[Any]:
    """Return the parts of fees that an address earned, as a referrer, and with a code as the builder that has it.

    The columns are exchange, asset, timestamp_s and units.
    """
    referred = shared_fees(referred_wallets.c.referrer == address).c
    earned = [
        sa.select(
            referred.exchange,
            referred.asset,
            referred.timestamp_s,
            referred.referrer_units.label("units"),
        )
    ]
    if code is not None:
        built = shared_fees(orders.c.attributed_code == code).c
        earned.append(
            sa.select(
                built.exchange, built.asset, built.timestamp_s, built.builder_units.label("units")
            )
        )
    parts = sa.union_all(*earned).subquery()
    return sa.select(parts).where(parts.c.units > 0)


def _part(units: sa.ColumnElement[int], share_bps: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """Return the share of an amount, rounded down; the product with all of the amount might not fit."""
    return units // BPS * share_bps + units % BPS * share_bps // BPS


def _totals(row: sa.Row[Any]) -> FeeTotals:
    fee, builders, referrers = map(read_wide, (row.fee, row.builders, row.referrers))
    shares = FeeShares(builders, referrers, fee - builders - referrers)
    return FeeTotals(Address(row.exchange), AssetId(row.asset), fee, shares)
