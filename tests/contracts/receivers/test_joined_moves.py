"""Neighbouring makers of one wallet: their assets move once, and each order has its fill and its log."""

from collections.abc import Callable, Sequence

import pytest
from tests.contracts.evm import Actor, Receipt
from tests.contracts.market import NOTHING, Fill, World
from tests.contracts.packed import match_packed
from tests.contracts.signing import OWN_V1, UNIT, Order

from foretell.domain.values.hexadecimal import keccak256

Form = Callable[[World, Order, Sequence[Order], Fill], Receipt]

TRANSFER = keccak256(b"Transfer(address,address,uint256)")
TRANSFER_SINGLE = keccak256(b"TransferSingle(address,address,address,uint256,uint256)")
FILLED = "OrderFilled(bytes32,address,address,uint256,uint256,uint256,uint256,uint256)"
FEE_RATE_BPS = 1_000
ONE_WALLET_SHARE_MAX = 0.72

pytestmark = pytest.mark.parametrize(
    "form", [World.match, match_packed], ids=["matchOrders", "matchPacked"]
)


def moves(receipt: Receipt, *topics: bytes) -> int:
    """Return how often collateral and single tokens moved."""
    return sum(log.topics[0] in topics for log in receipt.logs)


def change(world: World, wallet: str, before: tuple[int, int, int]) -> tuple[int, ...]:
    return tuple(now - was for now, was in zip(world.holdings(wallet), before, strict=True))


@pytest.mark.parametrize("side", ["bid", "ask"])
def test_neighbours_of_one_wallet_swap_with_the_taker_once(
    world: World, form: Form, side: str
) -> None:
    maker, other = world.makers[:2]
    is_bid = side == "bid"
    taking, resting = (world.buy, world.sell) if is_bid else (world.sell, world.buy)
    taker = taking(world.taker, world.yes, 60 * UNIT, 60 if is_bid else 40)
    makers = [
        resting(who, world.yes, 20 * UNIT, cents, salt=salt)
        for salt, (who, cents) in enumerate([(maker, 50), (maker, 51), (other, 52)])
    ]
    before = [world.holdings(who.address) for who in (world.taker, maker, other)]
    fill = Fill(taker.maker_amount, tuple(each.maker_amount for each in makers))
    receipt = form(world, taker, makers, fill)
    assert moves(receipt, TRANSFER) == moves(receipt, TRANSFER_SINGLE) == 2
    sign = 1 if is_bid else -1
    paid, sold = 20 * UNIT * 101 // 100, 40 * UNIT
    assert change(world, maker.address, before[1]) == (sign * paid, -sign * sold, 0)
    last = 20 * UNIT * 52 // 100
    assert change(world, other.address, before[2]) == (sign * last, -sign * 20 * UNIT, 0)
    gave = -sign * (paid + last)
    assert change(world, world.taker.address, before[0]) == (gave, sign * 60 * UNIT, 0)


@pytest.mark.parametrize("kind", ["mint", "merge"])
def test_neighbours_of_one_wallet_have_one_part_of_the_sets(
    world: World, form: Form, kind: str
) -> None:
    maker, other = world.makers[:2]
    side, sign = (world.buy, 1) if kind == "mint" else (world.sell, -1)
    taker = side(world.taker, world.yes, 60 * UNIT, 50)
    makers = [
        side(who, world.no, 20 * UNIT, 50, salt=salt)
        for salt, who in enumerate([maker, maker, other])
    ]
    before = [world.holdings(who.address) for who in (world.taker, maker, other)]
    fill = Fill(taker.maker_amount, tuple(each.maker_amount for each in makers))
    receipt = form(world, taker, makers, fill)
    ins_and_outs = {TRANSFER_SINGLE: 3, TRANSFER: 3 + 1}  # the last is the exchange's own
    assert {topic: moves(receipt, topic) for topic in ins_and_outs} == ins_and_outs
    assert change(world, maker.address, before[1]) == (-sign * 20 * UNIT, 0, sign * 40 * UNIT)
    assert change(world, other.address, before[2]) == (-sign * 10 * UNIT, 0, sign * 20 * UNIT)
    assert change(world, world.taker.address, before[0]) == (
        *(-sign * 30 * UNIT, sign * 60 * UNIT, 0),
    )


@pytest.mark.parametrize("kind", ["transfer", "mint", "merge"])
def test_twenty_orders_of_one_wallet_cost_two_thirds_of_twenty_wallets(
    world: World, form: Form, kind: str
) -> None:
    taking = world.sell if kind == "merge" else world.buy
    resting = world.buy if kind == "mint" else world.sell
    token = world.yes if kind == "transfer" else world.no

    def gas(wallets: Sequence[Actor], salt: int) -> int:
        taker = taking(world.taker, world.yes, 20 * UNIT, 50, salt=salt)
        makers = [
            resting(who, token, UNIT, 50, salt=salt + place) for place, who in enumerate(wallets)
        ]
        fill = Fill(taker.maker_amount, tuple(each.maker_amount for each in makers))
        return form(world, taker, makers, fill).gas_used

    assert gas(world.makers[:1] * 20, salt=100) <= ONE_WALLET_SHARE_MAX * gas(world.makers, salt=1)


def test_a_wallet_that_is_no_neighbour_of_itself_moves_again(world: World, form: Form) -> None:
    maker, other = world.makers[:2]
    bid = world.buy(world.taker, world.yes, 3 * UNIT, 50)
    asks = [
        world.sell(who, world.yes, UNIT, 50, salt=salt)
        for salt, who in enumerate([maker, other, maker])
    ]
    receipt = form(world, bid, asks, Fill(bid.maker_amount, (UNIT,) * 3))
    assert moves(receipt, TRANSFER) == moves(receipt, TRANSFER_SINGLE) == 3


def test_a_swap_and_a_part_of_the_sets_of_one_wallet_are_two(world: World, form: Form) -> None:
    maker = world.makers[0]
    wallets = world.taker.address, maker.address, world.exchange.address
    bid = world.buy(world.taker, world.yes, 60 * UNIT, 60)
    makers = [
        world.sell(maker, world.yes, 20 * UNIT, 50),
        world.buy(maker, world.no, 20 * UNIT, 50),
        world.sell(maker, world.yes, 20 * UNIT, 55),
    ]
    before = [world.holdings(wallet) for wallet in wallets]
    form(world, bid, makers, Fill(bid.maker_amount, (20 * UNIT, 10 * UNIT, 20 * UNIT)))
    after = [change(world, *each) for each in zip(wallets, before, strict=True)]
    assert after[:2] == [(-31 * UNIT, 60 * UNIT, 0), (11 * UNIT, -40 * UNIT, 20 * UNIT)]
    assert after[2] == NOTHING


def test_each_order_of_a_joined_move_has_its_fill_and_its_fees(world: World, form: Form) -> None:
    """The taker's fee exceeds what the first order brings it, so that two orders withhold it."""
    maker, fields = world.makers[0], {"profile": OWN_V1, "fee_rate_bps": FEE_RATE_BPS}
    bid = world.buy(world.taker, world.yes, 42 * UNIT, 50, **fields)
    sizes = (2 * UNIT, 20 * UNIT, 20 * UNIT)
    asks = [
        world.sell(maker, world.yes, size, 50, salt=salt, **fields)
        for salt, size in enumerate(sizes)
    ]
    wallets = world.taker.address, maker.address, world.fee_receiver
    before = [world.holdings(wallet) for wallet in wallets]
    maker_fees = tuple(size // 20 for size in sizes)
    fill = Fill(bid.maker_amount, sizes, taker_fee=4 * UNIT, maker_fees=maker_fees)
    receipt = form(world, bid, asks, fill)
    logs = world.exchange.logs(receipt, FILLED)
    assert [log["orderHash"] for log in logs] == [world.hash(order) for order in (*asks, bid)]
    assert [log["fee"] for log in logs] == [*maker_fees, 4 * UNIT]
    assert [log["makerAmountFilled"] for log in logs] == [*sizes, bid.maker_amount]
    got = 21 * UNIT - sum(maker_fees)
    assert [change(world, *each) for each in zip(wallets, before, strict=True)] == [
        (-21 * UNIT, 38 * UNIT, 0),
        (got, -42 * UNIT, 0),
        (sum(maker_fees), 4 * UNIT, 0),
    ]
