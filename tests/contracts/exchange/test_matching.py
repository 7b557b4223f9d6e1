from dataclasses import replace

import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import NOTHING, Fill, World, match_args
from tests.contracts.signing import BUY, FOREIGN_V1, FOREIGN_V2, OWN_V1, OWN_V2, SELL, UNIT

from foretell.domain.values.hexadecimal import keccak256

MAKERS_MAX = 20


def test_a_bid_takes_asks_at_their_prices(world: World, wallets: list[str]) -> None:
    bid = world.buy(world.taker, world.yes, 100 * UNIT, 60)
    asks = [
        world.sell(world.makers[0], world.yes, 40 * UNIT, 50),
        world.sell(world.makers[1], world.yes, 90 * UNIT, 55),
    ]
    fill = Fill(60 * UNIT, (40 * UNIT, 60 * UNIT))
    assert world.changes(wallets, bid, asks, fill) == [
        (-53 * UNIT, 100 * UNIT, 0),
        (20 * UNIT, -40 * UNIT, 0),
        (33 * UNIT, -60 * UNIT, 0),
        NOTHING,
    ]


def test_an_ask_takes_bids_at_their_prices(world: World, wallets: list[str]) -> None:
    ask = world.sell(world.taker, world.yes, 100 * UNIT, 40)
    bids = [
        world.buy(world.makers[0], world.yes, 40 * UNIT, 50),
        world.buy(world.makers[1], world.yes, 90 * UNIT, 45),
    ]
    fill = Fill(100 * UNIT, (20 * UNIT, 27 * UNIT))
    assert world.changes(wallets, ask, bids, fill) == [
        (47 * UNIT, -100 * UNIT, 0),
        (-20 * UNIT, 40 * UNIT, 0),
        (-27 * UNIT, 60 * UNIT, 0),
        NOTHING,
    ]


def test_a_bid_takes_asks_and_creates_sets_in_one_match(world: World, wallets: list[str]) -> None:
    bid = world.buy(world.taker, world.yes, 100 * UNIT, 60)
    others = [
        world.buy(world.makers[0], world.no, 40 * UNIT, 50),
        world.sell(world.makers[1], world.yes, 60 * UNIT, 55),
    ]
    fill = Fill(60 * UNIT, (20 * UNIT, 60 * UNIT))
    assert world.changes(wallets, bid, others, fill) == [
        (-53 * UNIT, 100 * UNIT, 0),
        (-20 * UNIT, 0, 40 * UNIT),
        (33 * UNIT, -60 * UNIT, 0),
        NOTHING,
    ]


def test_an_ask_takes_bids_and_merges_sets_in_one_match(world: World, wallets: list[str]) -> None:
    ask = world.sell(world.taker, world.no, 100 * UNIT, 40)
    others = [
        world.sell(world.makers[0], world.yes, 40 * UNIT, 50),
        world.buy(world.makers[1], world.no, 60 * UNIT, 45),
    ]
    fill = Fill(100 * UNIT, (40 * UNIT, 27 * UNIT))
    assert world.changes(wallets, ask, others, fill) == [
        (47 * UNIT, 0, -100 * UNIT),
        (20 * UNIT, -40 * UNIT, 0),
        (-27 * UNIT, 0, 60 * UNIT),
        NOTHING,
    ]


@pytest.mark.parametrize("maker", [OWN_V1, OWN_V2, FOREIGN_V1, FOREIGN_V2])
@pytest.mark.parametrize("taker", [OWN_V1, OWN_V2, FOREIGN_V1, FOREIGN_V2])
def test_orders_of_all_profiles_match_each_other(world: World, taker: int, maker: int) -> None:
    bid = world.buy(world.taker, world.yes, UNIT, 50, profile=taker)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50, profile=maker)
    world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))
    assert world.exchange.call("orderStatus", world.hash(bid)) == (True, 0)
    assert world.exchange.call("orderStatus", world.hash(ask)) == (True, 0)


def test_the_greatest_number_of_makers_is_matched(world: World) -> None:
    assert world.exchange.call("makersMax") == MAKERS_MAX == len(world.makers)
    bid = world.buy(world.taker, world.yes, MAKERS_MAX * UNIT, 50)
    asks = [world.sell(maker, world.yes, UNIT, 50) for maker in world.makers]
    world.match(bid, asks, Fill(MAKERS_MAX * UNIT // 2, (UNIT,) * MAKERS_MAX))
    assert world.exchange.call("orderStatus", world.hash(bid)) == (True, 0)


def test_one_maker_more_than_the_greatest_number_is_refused(world: World) -> None:
    bid = world.buy(world.taker, world.yes, 2 * MAKERS_MAX * UNIT, 50)
    asks = [world.sell(world.makers[0], world.yes, UNIT, 50, salt=salt) for salt in range(21)]
    with reverts(""):
        world.match(bid, asks, Fill(21 * UNIT // 2, (UNIT,) * 21))


def test_a_match_needs_makers(world: World) -> None:
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    with reverts("NoMakerOrders"):
        world.match(bid, [], Fill(UNIT // 2, ()))


@pytest.mark.parametrize(("fills", "fees"), [((), (0,)), ((UNIT, UNIT), (0,)), ((UNIT,), ())])
def test_every_maker_has_a_fill_and_a_fee(
    world: World, fills: tuple[int, ...], fees: tuple[int, ...]
) -> None:
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    with reverts("MismatchedArrayLengths"):
        world.match(bid, [ask], Fill(UNIT // 2, fills, maker_fees=fees))


def test_a_taker_pays_at_most_its_filled_amount(world: World) -> None:
    bid = world.buy(world.taker, world.yes, 100 * UNIT, 50)
    ask = world.sell(world.makers[0], world.yes, 100 * UNIT, 50)
    with reverts("TakerFillExceeded"):
        world.match(bid, [ask], Fill(50 * UNIT - 1, (100 * UNIT,)))


def test_a_taker_receives_at_least_its_filled_amount_at_its_limit(world: World) -> None:
    bid = world.buy(world.taker, world.yes, 100 * UNIT, 50)
    ask = world.sell(world.makers[0], world.yes, 100 * UNIT, 40)
    with reverts("TooLittleTokensReceived"):
        world.match(bid, [ask], Fill(50 * UNIT, (100 * UNIT - 1,)))
    world.match(bid, [ask], Fill(50 * UNIT, (100 * UNIT,)))


def test_a_taker_may_receive_more_for_its_whole_amount(world: World) -> None:
    """A market order to buy: a better price gives more tokens than its limit."""
    bid = world.buy(world.taker, world.yes, 100 * UNIT, 50)
    ask = world.sell(world.makers[0], world.yes, 200 * UNIT, 40)
    before = world.holdings(world.taker.address)
    world.match(bid, [ask], Fill(50 * UNIT, (125 * UNIT,)))
    after = world.holdings(world.taker.address)
    assert (after[0] - before[0], after[1] - before[1]) == (-50 * UNIT, 125 * UNIT)


def test_a_fraction_of_a_unit_is_rounded_up_for_the_maker(world: World) -> None:
    """Rounding favours the resting order, but must not exceed the taker's limit."""
    ask = world.order(world.makers[0], SELL, world.yes, (3, 1))
    bid = world.order(world.taker, BUY, world.yes, (1, 1))
    before = world.holdings(world.makers[0].address)
    world.match(bid, [ask], Fill(1, (1,)))
    after = world.holdings(world.makers[0].address)
    assert (after[0] - before[0], after[1] - before[1]) == (1, -1)


def test_a_rounded_fraction_beyond_the_takers_limit_is_refused(world: World) -> None:
    ask = world.order(world.makers[0], SELL, world.yes, (3, 1))
    bid = world.order(world.taker, BUY, world.yes, (2, 3))
    with reverts("WorseThanLimit"):
        world.match(bid, [ask], Fill(1, (1,)))


def test_one_wallet_may_be_on_both_sides(world: World) -> None:
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(world.taker, world.yes, UNIT, 50)
    before = world.holdings(world.taker.address)
    world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))
    assert world.holdings(world.taker.address) == before


@pytest.mark.parametrize("poor", ["taker", "maker"])
@pytest.mark.parametrize(
    ("side", "error"), [(BUY, "InsufficientBalance"), (SELL, "SafeMath: subtraction overflow")]
)
def test_a_match_that_an_account_cannot_pay_changes_nothing(
    world: World, poor: str, side: int, error: str
) -> None:
    newcomer = world.trader("newcomer")
    place = {BUY: world.buy, SELL: world.sell}
    traders = {"taker": (newcomer, world.makers[0]), "maker": (world.taker, newcomer)}[poor]
    poor_side = {"taker": (side, 1 - side), "maker": (1 - side, side)}[poor]
    taker = place[poor_side[0]](traders[0], world.yes, UNIT, 50)
    maker = place[poor_side[1]](traders[1], world.yes, UNIT, 50)
    with reverts(error):
        world.match(taker, [maker], Fill(taker.maker_amount, (maker.maker_amount,)))
    assert world.exchange.call("orderStatus", world.hash(taker)) == (False, 0)


@pytest.mark.case("B-05")
def test_a_maker_of_another_market_is_refused(world: World) -> None:
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(world.makers[0], world.tokens_of(b"\1" * 32)[0], UNIT, 50)
    with reverts("MismatchedTokenIds"):
        world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))


def test_an_invalid_maker_order_voids_the_match(world: World) -> None:
    bid = world.buy(world.taker, world.yes, 2 * UNIT, 50)
    good = world.sell(world.makers[0], world.yes, UNIT, 50)
    bad = replace(world.sell(world.makers[1], world.yes, UNIT, 50), salt=9)
    with reverts("InvalidSignature"):
        world.match(bid, [good, bad], Fill(UNIT, (UNIT, UNIT)))
    assert world.exchange.call("orderStatus", world.hash(good)) == (False, 0)


def test_match_orders_is_called_by_the_selector_of_its_tuple(world: World) -> None:
    order = (
        "(uint256,address,address,address,uint256,uint256,uint256,uint256,uint256,uint256,"
        "uint256,bytes32,bytes32,uint8,uint8,uint8,bytes)"
    )
    signature = f"matchOrders({order},{order}[],uint256,uint256[],uint256,uint256[])"
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    calldata = world.exchange.calldata("matchOrders", *match_args(bid, [], Fill(0, ())))
    assert calldata[:4] == keccak256(signature.encode())[:4]
