"""Shares of charged fees: in SQL as by hand, to the unit, on SQLite and on PostgreSQL."""

import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from tests.rigs.rows import Rows
from tests.rigs.values import EXCHANGE, a_word, an_address, an_asset

from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.builder_fees import BuilderRates
from foretell.domain.portfolio.fee_shares import FeeShares, divide_fee
from foretell.domain.values.hexadecimal import Address
from foretell.edge.builders.keys import builder_code
from foretell.store.database import Database, Transaction
from foretell.store.index.activities import ActivityRow, ExchangeFill, record_exchange_fills
from foretell.store.queries.fee_shares import (
    ReferralRate,
    load_fee_totals,
    load_referral_rates,
    record_referral_rate,
)
from foretell.store.queries.referrals import ReferralFilter, load_received_shares
from foretell.store.trading.builder_trades import record_builder_rates
from foretell.store.trading.referrals import record_referral

pytestmark = pytest.mark.anyio

BUILDER, REFERRER = an_address("builder"), an_address("referrer")
FILLS = 80
CHANGE_AFTER = 40
"""The rates change after this fill, and the wallet was referred after a quarter of them."""
FEES = [0, 1, 3, 9_999, 10_001, 10**6, 10**16 + 7]


class Charged(NamedTuple):
    """A fill with a fee, and its parts by hand."""

    side: Side
    fee_units: int
    shares: FeeShares
    is_built: bool
    is_referred: bool

    @property
    def asset(self) -> AssetId:
        return an_asset(is_yes=True) if self.side is Side.BUY else COLLATERAL


@pytest.fixture
async def database(each_database_url: str) -> AsyncIterator[Database]:
    async with Database(each_database_url) as database:
        yield database


async def a_fill(
    rows: Rows, number: int, who: str, side: Side, fee_units: int, *, is_taker: bool
) -> ActivityRow:
    """Write a fill of the chain, of an order that the builder brought if it is even."""
    code = builder_code(BUILDER) if number % 2 == 0 else None
    order_id = a_word(f"brought {number}")
    await rows.rest(who, "rain", side, 40, 10, order_id=order_id, builder=code)
    act = await rows.buy(who, "rain", 10, 4, side=side, is_taker=is_taker)
    fill = ExchangeFill(
        block_number=act.block_number,
        log_index=act.log_index,
        part=act.part,
        order_id=order_id,
        wallet=act.wallet,
        counterparty=EXCHANGE,
        side=side,
        token_id=an_asset(is_yes=True),
        size_units=10,
        cost_units=4,
        fee_units=fee_units,
        is_taker=is_taker,
        tx_hash=act.tx_hash,
    )
    await record_exchange_fills(rows.tx, [fill])
    return act


async def write(tx: Transaction) -> list[Charged]:
    """Write fills of two wallets, of which one is referred later; rates change in between."""
    rows, seeded = Rows(tx), random.Random(7)
    await rows.open_named("rain")
    charged = []
    referrer_bps, builder_bps, is_referred = 0, 0, False
    for number in range(FILLS):
        who = seeded.choice(["bob", "carol"])
        side, is_taker = seeded.choice([Side.BUY, Side.SELL]), seeded.random() < 0.7
        fee_units = seeded.choice(FEES)
        act = await a_fill(rows, number, who, side, fee_units, is_taker=is_taker)
        is_built = number % 2 == 0 and is_taker
        counts = is_referred and who == "bob"
        shares = divide_fee(
            fee_units, builder_bps if is_built else 0, referrer_bps if counts else 0
        )
        charged.append(Charged(side, fee_units, shares, number % 2 == 0, counts))
        after_ms = (act.timestamp_s + 1) * 1_000
        if number == 0:
            builder_bps, referrer_bps = 3_333, 2_500
            await record_builder_rates(tx, builder_code(BUILDER), BuilderRates(after_ms, 3_333, 0))
            await record_referral_rate(tx, ReferralRate(after_ms, 2_500))
        elif number == FILLS // 4:
            is_referred = True
            await record_referral(tx, [an_address("bob")], REFERRER, act.timestamp_s + 1)
        elif number == CHANGE_AFTER:
            builder_bps, referrer_bps = 9_999, 1
            await record_builder_rates(tx, builder_code(BUILDER), BuilderRates(after_ms, 9_999, 50))
            await record_referral_rate(tx, ReferralRate(after_ms, 1))
    return charged


async def received(tx: Transaction, address: Address, asset: AssetId | None = None) -> int:
    wanted = ReferralFilter(address, builder_code(address), token_id=asset)
    found = await load_received_shares(tx, wanted, 10, 0)
    return sum(each.share_units for each in found)


async def test_the_shares_are_those_by_hand_and_add_up_to_the_fees(database: Database) -> None:
    async with database.writing() as tx:
        charged = await write(tx)
    async with database.reading() as tx:
        totals = await load_fee_totals(tx)
        by_asset = {each.asset: each for each in totals}
        earned = [
            (await received(tx, BUILDER, asset), await received(tx, REFERRER, asset))
            for asset in by_asset
        ]
        in_collateral = await received(tx, BUILDER), await received(tx, REFERRER)
    fees: Counter[AssetId] = Counter()
    expected = {asset: Counter[str]() for asset in by_asset}
    for each in charged:
        fees[each.asset] += each.fee_units
        expected[each.asset].update(each.shares._asdict())
    assert by_asset.keys() == {COLLATERAL, an_asset(is_yes=True)}
    assert {each.asset: each.fee_units for each in totals} == fees
    assert {each.asset: each.shares._asdict() for each in totals} == expected
    assert all(sum(each.shares) == each.fee_units for each in totals)
    assert earned == [(each.shares.builder_units, each.shares.referrer_units) for each in totals]
    collateral = by_asset[COLLATERAL].shares
    assert in_collateral == (collateral.builder_units, collateral.referrer_units)
    assert min(in_collateral) > 0


async def test_rates_are_kept_in_order_of_their_times(database: Database) -> None:
    rates = [ReferralRate(5, 10), ReferralRate(9, 0)]
    async with database.writing() as tx:
        for rate in reversed(rates):
            await record_referral_rate(tx, rate)
    async with database.reading() as tx:
        assert await load_referral_rates(tx) == rates
        assert await load_fee_totals(tx) == []
