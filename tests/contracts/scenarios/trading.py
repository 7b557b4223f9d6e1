"""Orders and matches. An allowed match must succeed, and a forbidden one must fail."""

from collections import Counter
from typing import Final

from tests.contracts.market import Fill, match_args
from tests.contracts.packed import records
from tests.contracts.scenarios.expected import COLLATERAL, ExpectedOrder, Key, crosses, fee_max
from tests.contracts.scenarios.order_hashes import order_digest
from tests.contracts.scenarios.orders import (
    Wanted,
    book_of,
    counterpart,
    is_open,
    is_signed,
    is_stopped,
    rest,
    sign,
)
from tests.contracts.scenarios.rig import TradedPair
from tests.contracts.scenarios.scenario import Scenario, Step
from tests.contracts.signing import BUY, SELL, Order

MAKERS_MAX: Final = 20
LADDER_MIN: Final = 5
RUNG_UNITS_MAX: Final = 60


def ladder(scenario: Scenario, step: Step) -> None:
    """Sign up to twenty orders of honest accounts that one more order fills, and match them."""
    traded, count = scenario.tradable(step.first), LADDER_MIN + step.second % (MAKERS_MAX - 4)
    token, side = traded.pair[step.third & 1], BUY if step.third & 2 else SELL
    other = traded.pair[1 - (step.third & 1)]
    makers, sizes = [], 0
    for rung in range(count):
        # Every third rung is on the taker's side of the complement.
        is_direct = (rung + step.third) % 3 != 0
        size = 2 * (1 + (step.amount + rung) % RUNG_UNITS_MAX)
        rung_side, rung_token = (1 - side, token) if is_direct else (side, other)
        who = scenario.trader(step.actor + rung)
        choice = step.second + rung * 7
        wanted = Wanted(who, rung_side, rung_token, size // 2, size, choice)
        makers.append(sign(scenario, traded, wanted))
        sizes += size
    who = scenario.trader(step.actor + count)
    taker = sign(scenario, traded, Wanted(who, side, token, sizes // 2, sizes, step.third))
    scenario.done[f"ladder of {count}"] += attempt_match(scenario, traded, taker, makers, step)


def match(scenario: Scenario, step: Step) -> None:
    """Match an order with those that cross it, as an operator that may exceed the limits."""
    traded = scenario.tradable(step.first)
    orders = scenario.orders.get(book_of(traded), [])
    # The operator usually chooses open orders, but at some steps also closed ones.
    chosen = orders
    if step.third % 16:
        chosen = [each for each in orders if is_open(each[1]) and is_signed(scenario, each[1])]
    if not chosen:
        chosen = [rest(scenario, traded, step)]
    taker_order, taker = chosen[-1 - step.actor % min(len(chosen), 6)]
    makers = [(order, maker) for order, maker in chosen if meets(taker, maker)]
    makers = makers[-1 - step.second % MAKERS_MAX :]
    if not makers:
        wanted = counterpart(scenario, taker, step)
        makers = [sign(scenario, traded, wanted)]
    attempt_match(scenario, traded, (taker_order, taker), makers, step)


def attempt_match(
    scenario: Scenario,
    traded: TradedPair,
    takers: tuple[Order, ExpectedOrder],
    makers: list[tuple[Order, ExpectedOrder]],
    step: Step,
) -> bool:
    """Match, packed or not, and compare; return whether it went through."""
    taker_order, taker = takers
    rate_bps = scenario.fees[traded.exchange.address].rate_at(scenario.rig.evm.now())
    makings = makings_of(taker, makers, step)
    paid, received = totals(taker, makers, makings, traded)
    fees = [
        fee_max(maker, making, maker.taking_of(making), rate_bps) * (step.third % 101) // 100
        for (_, maker), making in zip(makers, makings, strict=True)
    ]
    taker_fee = fee_max(taker, paid, received, rate_bps) * (step.second % 101) // 100
    fill = Fill(taker_fill := max(paid, 1), tuple(makings), taker_fee, tuple(fees))
    name, arguments = call_of(taker_order, [order for order, _ in makers], fill, step)
    operator = scenario.rig.world.operator
    is_simulated = None if step.amount % 2 else simulate(scenario, traded, name, arguments)
    is_matched = scenario.attempt(operator, traded.exchange, name, *arguments)
    orders_of = [taker, *(maker for _, maker in makers)]
    check_simulated(scenario, orders_of, (is_simulated, is_matched))
    fills = list(zip([maker for _, maker in makers], makings, fees, strict=True))
    if is_matched:
        check_allowed(scenario, traded, taker, taker_fill, fills)
        owed = scenario.done["owed to the fickle wallet"]
        settle(scenario, traded, taker, taker_fee, fills)
        is_fickle = scenario.done["owed to the fickle wallet"] > owed
        scenario.done["changed its mind"] += is_fickle and is_simulated is True
        take_off(taker, taker_fill, fills)
        check_status(traded, [(taker_order, taker), *makers])
        scenario.done["matched"] += 1
    else:
        assert may_fail(scenario, traded, taker, taker_fill, fills), scenario.refusal
        scenario.done["refused"] += 1
        scenario.done[f"refused: {scenario.refusal}"] += 1
    return is_matched


def call_of(
    taker: Order, makers: list[Order], fill: Fill, step: Step
) -> tuple[str, tuple[object, ...]]:
    """Return the name and the arguments of a match, packed or not."""
    if step.second & 1:
        return "matchPacked", (records(taker, makers, fill),)
    return "matchOrders", match_args(taker, makers, fill)


def check_simulated(
    scenario: Scenario,
    orders: list[ExpectedOrder],
    outcomes: tuple[bool | None, bool],
) -> None:
    """Check that no receiver makes a match fail that was well when it was simulated; a signer may."""
    signers, done = scenario.rig.signers, scenario.done
    is_simulated, is_matched = outcomes
    wavering = [order for order in orders if order.who == signers.wavering]
    assert is_simulated in {None, is_matched} or wavering, scenario.refusal
    done["signer changed its mind"] += is_simulated not in {None, is_matched}
    outcome = "matched" if is_matched else "refused"
    done[f"{outcome} for a deposit wallet"] += any(order.who == signers.owned for order in orders)
    done[f"{outcome} for a wavering signer"] += len(wavering) > 0
    done[f"{outcome} by approval"] += any(order.is_unsigned for order in orders)
    done["refused for a forgery"] += any(order.is_forged for order in orders)


def simulate(
    scenario: Scenario, traded: TradedPair, name: str, arguments: tuple[object, ...]
) -> bool:
    """Return whether a match succeeds now, a second before it is mined; undo it."""
    evm, operator = scenario.rig.evm, scenario.rig.world.operator
    with evm.rolled_back():
        is_matched = scenario.attempt(operator, traded.exchange, name, *arguments)
    evm.rpc("evm_increaseTime", 1)
    return is_matched


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
    assert traded.exchange.address not in scenario.paused | scenario.without_operator
    spent: Counter[int] = Counter()
    spent[id(taker)] += taker_fill
    for maker, making, _ in fills:
        spent[id(maker)] += making
    assert all(making > 0 for _, making, _ in fills)
    for order in (taker, *(maker for maker, *_ in fills)):
        assert not order.is_cancelled
        assert is_signed(scenario, order)
        assert not is_stopped(scenario, traded, order)
        assert spent[id(order)] <= order.remaining
    parts = [part(taker, maker, making) for maker, making, _ in fills]
    paid, received = (sum(each[place] for each in parts) for place in (0, 1))
    assert received * taker.making >= paid * taker.taking
    assert paid <= taker_fill


def settle(
    scenario: Scenario,
    traded: TradedPair,
    taker: ExpectedOrder,
    taker_fee: int,
    fills: list[FillOf],
) -> None:
    """Apply a match to the expected balances."""
    expected, fees = scenario.expected, scenario.fees[traded.exchange.address].receiver
    for maker, making, fee in fills:
        paid, received = part(taker, maker, making)
        taking = maker.taking_of(making)
        gives = COLLATERAL if taker.side == BUY else taker.token
        gets = taker.token if taker.side == BUY else COLLATERAL
        if maker.side != taker.side:
            expected.move(gives, taker.who, maker.who, taking)
            expected.move(gets, maker.who, taker.who, making)
            expected.move(gives, maker.who, fees, fee)
            deliver(scenario, traded, maker.who, gives, taking - fee)
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
        deliver(scenario, traded, maker.who, theirs, taking - fee)
    received_asset = taker.token if taker.side == BUY else COLLATERAL
    expected.move(received_asset, taker.who, fees, taker_fee)
    received = sum(part(taker, maker, making)[1] for maker, making, _ in fills)
    deliver(scenario, traded, taker.who, received_asset, received - taker_fee)


def deliver(scenario: Scenario, traded: TradedPair, who: str, asset: int, amount: int) -> None:
    """Have the exchange keep the tokens that a wallet refuses."""
    if asset != COLLATERAL and who in scenario.refusing and amount:
        exchange = traded.exchange.address
        scenario.expected.move(asset, who, exchange, amount)
        scenario.owed[exchange, who, asset] += amount
        scenario.done["owed"] += 1
        scenario.done["owed to the fickle wallet"] += who == scenario.rig.fickle


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
        traded.exchange.address in scenario.paused | scenario.without_operator
        or any(order.is_cancelled for order in orders)
        or any(is_stopped(scenario, traded, order) for order in orders)
        or not all(is_signed(scenario, order) for order in orders)
        or any(
            not 0 < making <= order.remaining for order, making in zip(orders, makings, strict=True)
        )
        or any(scenario.expected.units[key] < amount for key, amount in needs.items())
        or received * taker.making < paid * taker.taking
        or received < taker_fill * taker.taking // taker.making
    )
