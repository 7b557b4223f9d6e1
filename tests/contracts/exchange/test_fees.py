from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts.evm import reverts
from tests.contracts.market import FEE_RISE_DELAY_S, Fill, World, deploy_exchange
from tests.contracts.signing import BUY, OWN_V1, OWN_V2, SELL, UNIT, ZERO, Order

BPS = 10_000
FEE_RATE_BPS_MAX = 1_000
SIZE = 100 * UNIT

CHARGED = "FeeCharged(address,uint256,uint256)"
CHARGED_V2 = "FeeCharged(address,uint256)"
ANNOUNCED = "MaxFeeRateAnnounced(uint256,uint256)"
CHANGED = "MaxFeeRateChanged(uint256)"


@pytest.fixture
def charging(world: World) -> World:
    """An exchange with a fee of up to two per cent for v2 orders."""
    world.allow_fees(200)
    return world


def v1_fee_max(side: int, rate_bps: int, cost: int, size: int) -> int:
    """Return rate * min(price, 1 - price) of the size, in the received asset."""
    if side == SELL:
        return rate_bps * min(cost, size - cost) // BPS
    return rate_bps * min(cost, size - cost) * size // (cost * BPS)


def orders(world: World, taker_side: int, cents: int, **fields: Any) -> tuple[Order, Order]:
    """Return a taker and a maker on opposite sides of Yes."""
    place = {BUY: world.buy, SELL: world.sell}
    taker = place[taker_side](world.taker, world.yes, SIZE, cents, **fields)
    maker = place[1 - taker_side](world.makers[0], world.yes, SIZE, cents, **fields)
    return taker, maker


def fill_of(taker: Order, maker: Order, taker_fee: int = 0, maker_fee: int = 0) -> Fill:
    return Fill(taker.maker_amount, (maker.maker_amount,), taker_fee, (maker_fee,))


@pytest.mark.case("B-11")
@pytest.mark.parametrize("taker_side", [BUY, SELL])
@pytest.mark.parametrize("cents", [1, 30, 50, 70, 99])
@pytest.mark.parametrize("rate_bps", [1, 100, FEE_RATE_BPS_MAX])
def test_a_v1_order_pays_at_most_its_signed_rate_on_both_sides(
    world: World, taker_side: int, cents: int, rate_bps: int
) -> None:
    taker, maker = orders(world, taker_side, cents, fee_rate_bps=rate_bps)
    cost = SIZE * cents // 100
    most = [v1_fee_max(side, rate_bps, cost, SIZE) for side in (taker_side, 1 - taker_side)]
    with reverts("FeeExceedsMaxRate"):
        world.match(taker, [maker], fill_of(taker, maker, most[0] + 1, 0))
    with reverts("FeeExceedsMaxRate"):
        world.match(taker, [maker], fill_of(taker, maker, 0, most[1] + 1))
    world.match(taker, [maker], fill_of(taker, maker, most[0], most[1]))


def test_a_v1_order_that_signed_no_rate_pays_no_fee(world: World) -> None:
    """ChainSecurity, CTF exchange, 6.3: the fee rate was not in the hash."""
    taker, maker = orders(world, BUY, 50)
    with reverts("FeeExceedsMaxRate"):
        world.match(taker, [maker], fill_of(taker, maker, 1, 0))
    with reverts("FeeExceedsMaxRate"):
        world.match(taker, [maker], fill_of(taker, maker, 0, 1))


@pytest.mark.case("B-11")
@pytest.mark.parametrize("taker_side", [BUY, SELL])
def test_a_v2_order_pays_at_most_what_the_admin_allows(charging: World, taker_side: int) -> None:
    taker, maker = orders(charging, taker_side, 50, profile=OWN_V2)
    received = {BUY: SIZE, SELL: SIZE // 2}
    taker_most, maker_most = received[taker_side] // 50, received[1 - taker_side] // 50
    with reverts("FeeExceedsMaxRate"):
        charging.match(taker, [maker], fill_of(taker, maker, taker_most + 1, 0))
    with reverts("FeeExceedsMaxRate"):
        charging.match(taker, [maker], fill_of(taker, maker, 0, maker_most + 1))
    charging.match(taker, [maker], fill_of(taker, maker, taker_most, maker_most))


def test_a_v2_order_pays_nothing_until_the_admin_allows_it(world: World) -> None:
    taker, maker = orders(world, BUY, 50, profile=OWN_V2)
    with reverts("FeeExceedsMaxRate"):
        world.match(taker, [maker], fill_of(taker, maker, 1, 0))


@pytest.mark.parametrize("taker_side", [BUY, SELL])
def test_fees_are_taken_from_the_asset_that_each_side_receives(
    charging: World, taker_side: int
) -> None:
    taker, maker = orders(charging, taker_side, 50, profile=OWN_V2)
    wallets = (charging.taker.address, charging.makers[0].address, charging.fee_receiver)
    before = [charging.holdings(wallet) for wallet in wallets]
    receipt = charging.match(taker, [maker], fill_of(taker, maker, 7, 5))
    changed = [
        tuple(now - was for now, was in zip(charging.holdings(wallet), held, strict=True))
        for wallet, held in zip(wallets, before, strict=True)
    ]
    half = SIZE // 2
    expected = {
        BUY: [(-half, SIZE - 7, 0), (half - 5, -SIZE, 0), (5, 7, 0)],
        SELL: [(half - 7, -SIZE, 0), (-half, SIZE - 5, 0), (7, 5, 0)],
    }
    assert changed == expected[taker_side]
    assert charging.exchange.logs(receipt, CHARGED) == []
    assert charging.exchange.logs(receipt, CHARGED_V2) == [
        {"receiver": charging.fee_receiver, "amount": 7},
        {"receiver": charging.fee_receiver, "amount": 5},
    ]


def test_fees_of_a_v1_taker_are_logged_in_its_form_once_for_each_payment(world: World) -> None:
    bid = world.buy(world.taker, world.yes, 2 * SIZE, 50, fee_rate_bps=100)
    asks = [world.sell(maker, world.yes, SIZE, 50, fee_rate_bps=100) for maker in world.makers[:2]]
    receipt = world.match(bid, asks, Fill(SIZE, (SIZE, SIZE), 7, (5, 3)))
    assert world.exchange.logs(receipt, CHARGED_V2) == []
    assert world.exchange.logs(receipt, CHARGED) == [
        {"receiver": world.fee_receiver, "tokenId": world.yes, "amount": 7},
        {"receiver": world.fee_receiver, "tokenId": 0, "amount": 8},
    ]


@pytest.mark.parametrize(("side", "taker_fee", "maker_fee"), [(BUY, 7, 5), (SELL, 7, 5)])
def test_fees_are_taken_from_complete_sets(
    charging: World, side: int, taker_fee: int, maker_fee: int
) -> None:
    place = {BUY: charging.buy, SELL: charging.sell}[side]
    taker = place(charging.taker, charging.yes, SIZE, 50, profile=OWN_V2)
    maker = place(charging.makers[0], charging.no, SIZE, 50, profile=OWN_V2)
    wallets = (charging.taker.address, charging.makers[0].address, charging.fee_receiver)
    before = [charging.holdings(wallet) for wallet in wallets]
    charging.match(taker, [maker], fill_of(taker, maker, taker_fee, maker_fee))
    changed = [
        tuple(now - was for now, was in zip(charging.holdings(wallet), held, strict=True))
        for wallet, held in zip(wallets, before, strict=True)
    ]
    half = SIZE // 2
    expected = {
        BUY: [(-half, SIZE - 7, 0), (-half, 0, SIZE - 5), (0, 7, 5)],
        SELL: [(half - 7, -SIZE, 0), (half - 5, 0, -SIZE), (12, 0, 0)],
    }
    assert changed == expected[side]


def test_a_takers_fee_is_charged_over_several_makers(charging: World) -> None:
    """The first fills may be smaller than the fee, and the rest of it is taken from the sets."""
    bid = charging.buy(charging.taker, charging.yes, 1_000, 50, profile=OWN_V2)
    makers = [
        charging.sell(charging.makers[0], charging.yes, 2, 50),
        charging.sell(charging.makers[1], charging.yes, 4, 50),
        charging.buy(charging.makers[2], charging.no, 994, 50),
    ]
    before = charging.holdings(charging.taker.address)
    charging.match(bid, makers, Fill(500, (2, 4, 497), 20, (0, 0, 0)))
    after = charging.holdings(charging.taker.address)
    assert (after[0] - before[0], after[1] - before[1]) == (-500, 980)
    assert charging.holdings(charging.fee_receiver) == (0, 20, 0)


def test_fees_go_to_the_current_receiver(charging: World) -> None:
    other = charging.evm.actor("another receiver").address
    receipt = charging.exchange.send("setFeeReceiver", other, sender=charging.admin)
    assert charging.exchange.call("feeReceiver") == other
    assert charging.exchange.logs(receipt, "FeeReceiverChanged(address)") == [{"receiver": other}]
    taker, maker = orders(charging, BUY, 50, profile=OWN_V2)
    charging.match(taker, [maker], fill_of(taker, maker, 7, 5))
    assert charging.holdings(other) == (5, 7, 0)


@pytest.mark.parametrize("change", ["limit", "rise", "receiver", "pause", "unpause"])
def test_what_the_admin_sets_changes_nothing_else_of_one_word(charging: World, change: str) -> None:
    """Fee receiver, limit, announced rise and pause share a word of the exchange's storage."""
    exchange, other = charging.exchange, charging.evm.actor("another receiver").address
    if change == "unpause":
        exchange.send("pauseTrading", sender=charging.admin)
    exchange.send("setMaxFeeRateBps", FEE_RATE_BPS_MAX, sender=charging.admin)
    names = ("maxFeeRateBps", "nextMaxFeeRateBps", "feeReceiver", "paused")
    before = {name: exchange.call(name) for name in names}
    calls: dict[str, tuple[Any, ...]] = {
        "limit": ("setMaxFeeRateBps", 200),
        "rise": ("setMaxFeeRateBps", FEE_RATE_BPS_MAX - 1),
        "receiver": ("setFeeReceiver", other),
        "pause": ("pauseTrading",),
        "unpause": ("unpauseTrading",),
    }
    exchange.send(*calls[change], sender=charging.admin)
    starts_at = charging.evm.now() + FEE_RISE_DELAY_S
    changed: dict[str, Any] = {
        "limit": {"nextMaxFeeRateBps": (0, 0)},
        "rise": {"nextMaxFeeRateBps": (FEE_RATE_BPS_MAX - 1, starts_at)},
        "receiver": {"feeReceiver": other},
        "pause": {"paused": True},
        "unpause": {"paused": False},
    }
    assert {name: exchange.call(name) for name in names} == before | changed[change]


@pytest.mark.parametrize("receiver", ["the zero address", "the exchange"])
def test_the_fee_receiver_must_be_able_to_withdraw(world: World, receiver: str) -> None:
    address = {"the zero address": ZERO, "the exchange": world.exchange.address}[receiver]
    with reverts("InvalidFeeReceiver"):
        world.exchange.send("setFeeReceiver", address, sender=world.admin)


def test_an_exchange_needs_a_fee_receiver(world: World) -> None:
    with reverts("InvalidFeeReceiver"):
        deploy_exchange(world, feeReceiver=ZERO)


@pytest.mark.case("J-04")
def test_l6_a_rise_of_the_v2_limit_is_announced_three_days_ahead(world: World) -> None:
    """Resting v2 orders signed no rate; their makers have three days to cancel."""
    exchange = world.exchange
    receipt = exchange.send("setMaxFeeRateBps", FEE_RATE_BPS_MAX, sender=world.admin)
    starts_at = world.evm.now() + FEE_RISE_DELAY_S
    assert exchange.logs(receipt, CHANGED) == []
    assert exchange.logs(receipt, ANNOUNCED) == [
        {"maxFeeRateBps": FEE_RATE_BPS_MAX, "effectiveAt": starts_at}
    ]
    assert exchange.call("nextMaxFeeRateBps") == (FEE_RATE_BPS_MAX, starts_at)
    taker, maker = orders(world, BUY, 50, profile=OWN_V2)
    world.evm.rpc("evm_setNextBlockTimestamp", starts_at - 1)
    with reverts("FeeExceedsMaxRate"):
        world.match(taker, [maker], fill_of(taker, maker, 1, 0))
    assert exchange.call("maxFeeRateBps") == 0
    world.evm.rpc("evm_increaseTime", 1)
    world.match(taker, [maker], fill_of(taker, maker, SIZE // 10, 0))
    assert exchange.call("maxFeeRateBps") == FEE_RATE_BPS_MAX
    assert exchange.call("nextMaxFeeRateBps") == (0, 0)


def test_l6_a_lower_limit_is_in_force_at_once_and_ends_a_rise(charging: World) -> None:
    exchange = charging.exchange
    exchange.send("setMaxFeeRateBps", 300, sender=charging.admin)
    assert exchange.call("maxFeeRateBps") == 200
    receipt = exchange.send("setMaxFeeRateBps", 100, sender=charging.admin)
    assert exchange.logs(receipt, CHANGED) == [{"maxFeeRateBps": 100}]
    assert exchange.call("maxFeeRateBps") == 100
    assert exchange.call("nextMaxFeeRateBps") == (0, 0)
    charging.evm.rpc("evm_increaseTime", 2 * FEE_RISE_DELAY_S)
    taker, maker = orders(charging, BUY, 50, profile=OWN_V2)
    with reverts("FeeExceedsMaxRate"):
        charging.match(taker, [maker], fill_of(taker, maker, SIZE // 100 + 1, 0))


def test_l6_a_second_announcement_starts_the_delay_again(charging: World) -> None:
    exchange = charging.exchange
    exchange.send("setMaxFeeRateBps", 300, sender=charging.admin)
    starts_at = charging.evm.now() + FEE_RISE_DELAY_S
    charging.evm.rpc("evm_setNextBlockTimestamp", starts_at - 1)
    exchange.send("setMaxFeeRateBps", 400, sender=charging.admin)
    starts_at = charging.evm.now() + FEE_RISE_DELAY_S
    assert exchange.call("nextMaxFeeRateBps") == (400, starts_at)
    assert exchange.call("maxFeeRateBps") == 200


def test_the_admin_allows_v2_fees_up_to_a_limit(world: World) -> None:
    assert world.exchange.call("feeRateBpsMax") == FEE_RATE_BPS_MAX
    assert world.exchange.call("getMaxFeeRate") == FEE_RATE_BPS_MAX
    world.exchange.send("setMaxFeeRateBps", FEE_RATE_BPS_MAX, sender=world.admin)
    with reverts("FeeTooHigh"):
        world.exchange.send("setMaxFeeRateBps", FEE_RATE_BPS_MAX + 1, sender=world.admin)


@pytest.mark.parametrize(("name", "value"), [("setMaxFeeRateBps", 1), ("setFeeReceiver", ZERO)])
def test_only_the_admin_sets_fees(world: World, name: str, value: object) -> None:
    with reverts("NotAdmin"):
        world.exchange.send(name, value, sender=world.operator)


@pytest.mark.case("B-11")
@given(
    rate_bps=st.integers(0, FEE_RATE_BPS_MAX),
    size=st.integers(1, 10**12),
    cost=st.integers(0, 10**12),
    side=st.sampled_from((BUY, SELL)),
)
def test_the_signed_rate_bounds_the_fee_to_the_unit(
    world: World, rate_bps: int, size: int, cost: int, side: int
) -> None:
    cost = min(size, cost + 1)
    amounts = {BUY: (cost, size), SELL: (size, cost)}
    taker = world.order(world.taker, side, world.yes, amounts[side], fee_rate_bps=rate_bps)
    maker = world.order(world.makers[0], 1 - side, world.yes, amounts[1 - side])
    most = v1_fee_max(side, rate_bps, cost, size)
    with world.evm.rolled_back():
        world.match(taker, [maker], fill_of(taker, maker, most))
    with world.evm.rolled_back(), reverts("FeeExceedsMaxRate"):
        world.match(taker, [maker], fill_of(taker, maker, most + 1))


@pytest.mark.parametrize("profile", [OWN_V1, OWN_V2])
@pytest.mark.parametrize("fees", [(2**256 - 1, 0), (0, 2**200)])
def test_an_absurd_fee_is_refused(charging: World, profile: int, fees: tuple[int, int]) -> None:
    taker, maker = orders(charging, BUY, 50, profile=profile)
    with reverts("FeeExceedsMaxRate"):
        charging.match(taker, [maker], fill_of(taker, maker, *fees))
