"""Orders and matches. An allowed match must succeed, and a forbidden one must fail."""

from collections import Counter
from typing import Final

from tests.contracts.market import Fill, match_args
from tests.contracts.scenarios.expected import COLLATERAL, ExpectedOrder, Key, crosses, fee_max
from tests.contracts.scenarios.rig import TradedPair, order_digest, signed_order
from tests.contracts.scenarios.scenario import Scenario, Step
from tests.contracts.signing import BUY, ERC1271, OWN_V1, OWN_V2, SELL, Order

MAKERS_MAX: Final = 4


def place(scenario: Scenario, step: Step) -> None:
    """Sign an order of any kind, and keep it for the operator."""
    who, traded = scenario.account(step.actor), scenario.traded(step.first)
    is_hostile = who in scenario.rig.hostile
    profile = OWN_V2 if is_hostile or step.second & 1 else OWN_V1
    side = BUY if step.second & 2 else SELL
    token = traded.pair[step.second >> 2 & 1]
    size = 1 + step.amount % (10 if step.second & 8 else 3_000)
    cost = max(1, size * (35 + step.third % 31) // 100)
    rate = 0 if profile == OWN_V2 else (0, 100, 1_000)[step.second % 3]
    scenario.salt += 1
    nonce = 0 if profile == OWN_V2 else scenario.nonces[traded.exchange.address, address_key(who)]
    resting = ExpectedOrder(who, side, token, cost, size, profile, rate, 0, nonce)
    resting.remaining = resting.making
    order = Order(
        maker=who,
        signer=who,
        token_id=token,
        maker_amount=resting.making,
        taker_amount=resting.taking,
        side=side,
        salt=scenario.salt,
        nonce=nonce,
        fee_rate_bps=rate,
        profile=profile,
        signature_type=ERC1271 if is_hostile else 0,
    )
    keys = {actor.address: actor.key for actor in scenario.rig.traders}
    order = signed_order(order, traded.exchange, keys.get(who))
    scenario.orders.setdefault(book_of(traded), []).append((order, resting))


def address_key(who: str) -> int:
    return int(who, 16)


def book_of(traded: TradedPair) -> tuple[str, str]:
    return traded.exchange.address, traded.condition.hex()


def match(scenario: Scenario, step: Step) -> None:
    """Match an order with those that cross it, as an operator that may exceed the limits."""
    traded = scenario.traded(step.first)
    orders = scenario.orders.get(book_of(traded), [])
    if not orders:
        return
    # The operator usually chooses open orders, but at some steps also closed ones.
    chosen = orders if step.third % 16 == 0 else [each for each in orders if is_open(each[1])]
    if not chosen:
        return
    taker_order, taker = chosen[-1 - step.actor % min(len(chosen), 6)]
    makers = [(order, maker) for order, maker in chosen if meets(taker, maker)]
    makers = makers[-MAKERS_MAX:]
    if not makers:
        return
    makings = makings_of(taker, makers, step)
    paid, received = totals(taker, makers, makings, traded)
    fees = [
        fee_max(maker, making, maker.taking_of(making)) * (step.third % 101) // 100
        for (_, maker), making in zip(makers, makings, strict=True)
    ]
    taker_fee = fee_max(taker, paid, received) * (step.second % 101) // 100
    taker_fill = max(paid, 1)
    arguments = match_args(
        taker_order,
        [order for order, _ in makers],
        Fill(taker_fill, tuple(makings), taker_fee, tuple(fees)),
    )
    is_matched = scenario.attempt(
        scenario.rig.world.operator, traded.exchange, "matchOrders", *arguments
    )
    fills = list(zip([maker for _, maker in makers], makings, fees, strict=True))
    if is_matched:
        check_allowed(scenario, traded, taker, taker_fill, fills)
        settle(scenario, traded, taker, taker_fee, fills)
        take_off(taker, taker_fill, fills)
        check_status(traded, [(taker_order, taker), *makers])
        scenario.done["matched"] += 1
    else:
        assert may_fail(scenario, traded, taker, taker_fill, fills), scenario.refusal
        scenario.done["refused"] += 1


def is_open(order: ExpectedOrder) -> bool:
    return order.remaining > 0 and not order.is_cancelled


def meets(taker: ExpectedOrder, maker: ExpectedOrder) -> bool:
    is_direct = taker.side != maker.side
    same = taker.token == maker.token
    return maker is not taker and is_direct == same and crosses(taker, maker)


def makings_of(
    taker: ExpectedOrder, makers: list[tuple[Order, ExpectedOrder]], step: Step
) -> list[int]:
    """Return the fill of each maker: its remaining amount, or less to fit the taker."""
    left = taker.remaining
    makings = []
    for _, maker in makers:
        most = maker.remaining if step.third % 3 else max(1, maker.remaining // 2)
        making = most
        while making > 1 and part(taker, maker, making)[0] > left:
            making = making // 2
        makings.append(making)
        left -= part(taker, maker, making)[0]
    return makings


def part(taker: ExpectedOrder, maker: ExpectedOrder, making: int) -> tuple[int, int]:
    """Return the amounts that the taker pays and receives for a fill of a maker."""
    taking = maker.taking_of(making)
    if taker.side != maker.side:
        return taking, making
    if taker.side == BUY:
        return taking - making, taking
    return making, making - taking


def totals(
    taker: ExpectedOrder,
    makers: list[tuple[Order, ExpectedOrder]],
    makings: list[int],
    traded: TradedPair,
) -> tuple[int, int]:
    assert taker.token in traded.pair
    parts = [part(taker, maker, making) for (_, maker), making in zip(makers, makings, strict=True)]
    return sum(paid for paid, _ in parts), sum(received for _, received in parts)


FillOf = tuple[ExpectedOrder, int, int]


def check_allowed(
    scenario: Scenario,
    traded: TradedPair,
    taker: ExpectedOrder,
    taker_fill: int,
    fills: list[FillOf],
) -> None:
    """Check that a successful match was allowed."""
    assert traded.exchange.address not in scenario.paused
    spent: Counter[int] = Counter()
    spent[id(taker)] += taker_fill
    for maker, making, _ in fills:
        spent[id(maker)] += making
    assert all(making > 0 for _, making, _ in fills)
    for order in (taker, *(maker for maker, *_ in fills)):
        assert not order.is_cancelled
        assert order.profile == OWN_V2 or order.nonce == nonce_of(scenario, traded, order)
        assert spent[id(order)] <= order.remaining
    parts = [part(taker, maker, making) for maker, making, _ in fills]
    paid, received = (sum(each[place] for each in parts) for place in (0, 1))
    assert received * taker.making >= paid * taker.taking
    assert paid <= taker_fill


def nonce_of(scenario: Scenario, traded: TradedPair, order: ExpectedOrder) -> int:
    return scenario.nonces[traded.exchange.address, address_key(order.who)]


def settle(
    scenario: Scenario,
    traded: TradedPair,
    taker: ExpectedOrder,
    taker_fee: int,
    fills: list[FillOf],
) -> None:
    """Apply a match to the expected balances."""
    expected, fees = scenario.expected, scenario.rig.world.fee_receiver
    for maker, making, fee in fills:
        paid, received = part(taker, maker, making)
        taking = maker.taking_of(making)
        gives = COLLATERAL if taker.side == BUY else taker.token
        gets = taker.token if taker.side == BUY else COLLATERAL
        if maker.side != taker.side:
            expected.move(gives, taker.who, maker.who, taking)
            expected.move(gets, maker.who, taker.who, making)
            expected.move(gives, maker.who, fees, fee)
            continue
        theirs = COLLATERAL if taker.side == SELL else maker.token
        given = maker.token if taker.side == SELL else COLLATERAL
        for who, asset, amount in (
            (taker.who, gives, -paid),
            (taker.who, gets, received),
            (maker.who, given, -making),
            (maker.who, theirs, taking),
        ):
            expected.change(who, asset, amount)
        sets = taking if taker.side == BUY else -making
        expected.change(traded.lock, COLLATERAL, sets)
        expected.move(theirs, maker.who, fees, fee)
    received_asset = taker.token if taker.side == BUY else COLLATERAL
    expected.move(received_asset, taker.who, fees, taker_fee)


def take_off(taker: ExpectedOrder, taker_fill: int, fills: list[FillOf]) -> None:
    taker.remaining -= taker_fill
    for maker, making, _ in fills:
        maker.remaining -= making


def check_status(traded: TradedPair, orders: list[tuple[Order, ExpectedOrder]]) -> None:
    for order, resting in orders:
        assert traded.exchange.call("orderStatus", order_digest(order, traded.exchange)) == (
            resting.remaining == 0,
            resting.remaining,
        )


def may_fail(
    scenario: Scenario,
    traded: TradedPair,
    taker: ExpectedOrder,
    taker_fill: int,
    fills: list[FillOf],
) -> bool:
    """Return whether there was a reason to refuse the match."""
    orders = [taker, *(maker for maker, *_ in fills)]
    makings = [taker_fill, *(making for _, making, _ in fills)]
    parts = [part(taker, maker, making) for maker, making, _ in fills]
    paid, received = (sum(each[place] for each in parts) for place in (0, 1))
    needs: Counter[Key] = Counter()
    for order, making in zip(orders, makings, strict=True):
        needs[order.who, COLLATERAL if order.side == BUY else order.token] += making
    return (
        traded.exchange.address in scenario.paused
        or any(order.is_cancelled or order.who == scenario.rig.hostile[0] for order in orders)
        or any(
            order.profile == OWN_V1 and order.nonce != nonce_of(scenario, traded, order)
            for order in orders
        )
        or any(
            not 0 < making <= order.remaining for order, making in zip(orders, makings, strict=True)
        )
        or any(scenario.expected.units[key] < amount for key, amount in needs.items())
        or received * taker.making < paid * taker.taking
        or received < taker_fill * taker.taking // taker.making
    )
