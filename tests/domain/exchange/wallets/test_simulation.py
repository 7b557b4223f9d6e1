"""The rule for trades that are sent in a batch without a simulation."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import NOW_MS, an_address

from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.settlement import SettlementOptions
from foretell.domain.exchange.wallets.simulation import (
    Payment,
    SettlementView,
    SimulationReason,
    simulation_reason,
    troubled_since,
)
from foretell.domain.exchange.wallets.wallet_bars import DAY_MS, day_of
from foretell.domain.values.hexadecimal import Address

EXCHANGE: Final = an_address("exchange")
OTHER: Final = an_address("other exchange")
ALICE: Final = an_address("alice")
BOB: Final = an_address("bob")
YES: Final = AssetId("1")
OPTIONS: Final = SettlementOptions()
SOON_S: Final = NOW_MS // 1000 + 1
LATER_S: Final = (NOW_MS + OPTIONS.unsimulated_expiry_ms) // 1000 + 1
TRADE: Final = (Payment(ALICE, COLLATERAL, is_own=True), Payment(BOB, YES, is_own=True))
VIEW: Final = SettlementView(
    NOW_MS,
    open_exchanges={EXCHANGE},
    plain={ALICE, BOB},
    held_units={(ALICE, COLLATERAL): 40, (BOB, YES): 100},
    allowed_units={(ALICE, EXCHANGE, True): 40, (BOB, EXCHANGE, False): 100},
    owed_units={(ALICE, COLLATERAL): 40, (BOB, YES): 100},
)


def reason(view: SettlementView = VIEW, *payments: Payment) -> SimulationReason | None:
    return simulation_reason(EXCHANGE, payments or TRADE, view, OPTIONS)


def test_a_trade_whose_wallets_are_plain_accounts_that_cover_it_is_not_simulated() -> None:
    assert reason() is None


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"open_exchanges": {OTHER}}, SimulationReason.EXCHANGE_CLOSED),
        ({"lag_blocks": OPTIONS.unsimulated_lag_blocks_max}, None),
        ({"lag_blocks": OPTIONS.unsimulated_lag_blocks_max + 1}, SimulationReason.INDEX_BEHIND),
        ({"gas_of_day": OPTIONS.unsimulated_gas_per_day_max - 1}, None),
        ({"gas_of_day": OPTIONS.unsimulated_gas_per_day_max}, SimulationReason.GAS_SPENT),
        ({"plain": {ALICE}}, SimulationReason.CODE_UNKNOWN),
        ({"troubled": {BOB}}, SimulationReason.FAILED_LATELY),
        ({"troubled": {an_address("carol")}}, None),
        ({"held_units": {(ALICE, COLLATERAL): 40, (BOB, YES): 99}}, SimulationReason.BALANCE),
        ({"held_units": {(BOB, YES): 100}}, SimulationReason.BALANCE),
        ({"owed_units": {(ALICE, COLLATERAL): 41, (BOB, YES): 100}}, SimulationReason.BALANCE),
        (
            {"allowed_units": {(ALICE, EXCHANGE, True): 39, (BOB, EXCHANGE, False): 100}},
            SimulationReason.ALLOWANCE,
        ),
        (
            {"allowed_units": {(ALICE, EXCHANGE, True): 40, (BOB, EXCHANGE, True): 100}},
            SimulationReason.ALLOWANCE,
        ),
        (
            {"allowed_units": {(ALICE, OTHER, True): 40, (BOB, EXCHANGE, False): 100}},
            SimulationReason.ALLOWANCE,
        ),
    ],
)
def test_what_is_known_of_the_chain_decides(
    change: dict[str, Any], wanted: SimulationReason | None
) -> None:
    assert reason(replace(VIEW, **change)) is wanted


@pytest.mark.parametrize(
    ("payment", "wanted"),
    [
        (Payment(BOB, YES, is_own=False), SimulationReason.CONTRACT_WALLET),
        (Payment(BOB, YES, is_own=True, expires_at_s=SOON_S), SimulationReason.EXPIRES),
        (Payment(BOB, YES, is_own=True, expires_at_s=LATER_S), None),
    ],
)
def test_the_orders_of_a_trade_decide(payment: Payment, wanted: SimulationReason | None) -> None:
    assert reason(VIEW, TRADE[0], payment) is wanted


def test_without_a_budget_of_gas_every_trade_is_simulated() -> None:
    options = replace(OPTIONS, unsimulated_gas_per_day_max=0)
    assert simulation_reason(EXCHANGE, TRADE, VIEW, options) is SimulationReason.GAS_SPENT


def test_a_failed_settlement_counts_for_at_least_a_day() -> None:
    for at_ms in range(NOW_MS, NOW_MS + DAY_MS, DAY_MS // 7):
        assert troubled_since(at_ms + DAY_MS - 1) <= day_of(at_ms)
        assert troubled_since(at_ms + 2 * DAY_MS) > day_of(at_ms)


@given(seed=st.integers(0, 2**64))
def test_in_a_chain_that_is_as_indexed_no_unsimulated_trade_fails_in_any_order(seed: int) -> None:
    """Each trade takes what its wallets give, and pays nothing out: the worst for those after it."""
    rng = random.Random(seed)
    wallets: list[Address] = [an_address(f"wallet {number}") for number in range(4)]
    assets = [COLLATERAL, YES, AssetId("2")]
    trades = [
        [
            (rng.choice(wallets), rng.choice(assets), rng.randint(1, 9))
            for _ in range(rng.randint(2, 4))
        ]
        for _ in range(rng.randint(1, 8))
    ]
    owed: Counter[tuple[Address, AssetId]] = Counter()
    for trade in trades:
        for wallet, asset, units in trade:
            owed[wallet, asset] += units
    held = {(wallet, asset): rng.randint(0, 60) for wallet in wallets for asset in assets}
    allowed = {
        (wallet, EXCHANGE, is_collateral): rng.randint(0, 60)
        for wallet in wallets
        for is_collateral in (True, False)
    }
    view = SettlementView(
        NOW_MS,
        open_exchanges={EXCHANGE},
        plain=set(wallets),
        held_units=held,
        allowed_units=allowed,
        owed_units=owed,
    )
    unsimulated = [
        reason(view, *(Payment(wallet, asset, is_own=True) for wallet, asset, _ in trade)) is None
        for trade in trades
    ]
    order = list(range(len(trades)))
    rng.shuffle(order)
    left, collateral_left = (
        dict(held),
        {wallet: allowed[wallet, EXCHANGE, True] for wallet in wallets},
    )
    for number in order:
        for wallet, asset, units in trades[number]:
            left[wallet, asset] -= units
            collateral_left[wallet] -= units * (asset == COLLATERAL)
            if unsimulated[number]:
                assert left[wallet, asset] >= 0
                assert asset != COLLATERAL or collateral_left[wallet] >= 0
                assert asset == COLLATERAL or allowed[wallet, EXCHANGE, False] >= units
