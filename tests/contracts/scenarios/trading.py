"""Orders and matches. An allowed match must succeed, and a forbidden one must fail."""

from collections import Counter
from typing import Final, NamedTuple

from tests.contracts.market import Fill, match_args
from tests.contracts.packed import records
from tests.contracts.scenarios.expected import COLLATERAL, ExpectedOrder, Key, crosses, fee_max
from tests.contracts.scenarios.rig import TradedPair, order_digest, signed_order
from tests.contracts.scenarios.scenario import Scenario, Step
from tests.contracts.signing import (
    BUY,
    EOA,
    ERC1271,
    FOREIGN_V1,
    FOREIGN_V2,
    OWN_V1,
    OWN_V2,
    SAFE,
    SELL,
    Order,
)

MAKERS_MAX: Final = 20
LADDER_MIN: Final = 5
RUNG_UNITS_MAX: Final = 60
V1_PROFILES: Final = (OWN_V1, FOREIGN_V1)
V2_PROFILES: Final = (OWN_V2, FOREIGN_V2)
# One order of so many may be for more than its account holds.
UNPAID_EVERY: Final = 8


class Wanted(NamedTuple):
    """An order to sign: whose it is, for what, and which of the profiles and rates it has."""

    who: str
    side: int
    token: int
    cost: int
    size: int
    choice: int


def place(scenario: Scenario, step: Step) -> None:
    """Sign an order of any kind, and keep it for the operator."""
    rest(scenario, scenario.tradable(step.first), step)


def rest(scenario: Scenario, traded: TradedPair, step: Step) -> tuple[Order, ExpectedOrder]:
    """Sign an order of any account, which can usually pay for it."""
    who = scenario.account(step.actor)
    side = BUY if step.second & 2 else SELL
    token = traded.pair[step.second >> 2 & 1]
    size = 1 + step.amount % (10 if step.second & 8 else 3_000)
    if step.third % UNPAID_EVERY:
        size = payable(scenario, who, COLLATERAL if side == BUY else token, size)
    cost = max(1, size * (35 + step.third % 31) // 100)
    return sign(scenario, traded, Wanted(who, side, token, cost, size, step.second))


def payable(scenario: Scenario, who: str, asset: int, size: int) -> int:
    """Return the part of a size that an account holds; one, if it holds nothing."""
    return max(1, min(size, scenario.expected.units[who, asset]))


def sign(scenario: Scenario, traded: TradedPair, wanted: Wanted) -> tuple[Order, ExpectedOrder]:
    """Sign an order, and keep it."""
    who, side, token, cost, size, choice = wanted
    is_hostile, owner = who in scenario.rig.hostile, scenario.rig.safes.get(who)
    profiles = V2_PROFILES if is_hostile or choice & 1 else V1_PROFILES
    profile = profiles[choice >> 4 & 1]
    is_v1 = profile in V1_PROFILES
    rate = (0, 100, 1_000)[choice % 3] if is_v1 else 0
    scenario.salt += 1
    nonce = scenario.nonces[traded.exchange.address, address_key(who)] if is_v1 else 0
    timestamp = 0 if is_v1 else scenario.salt
    resting = ExpectedOrder(who, side, token, cost, size, profile, rate, 0, nonce, timestamp)
    resting.remaining = resting.making
    order = Order(
        maker=who,
        signer=who if owner is None else owner.address,
        timestamp=timestamp,
        token_id=token,
        maker_amount=resting.making,
        taker_amount=resting.taking,
        side=side,
        salt=scenario.salt,
        nonce=nonce,
        fee_rate_bps=rate,
        profile=profile,
        signature_type=ERC1271 if is_hostile else EOA if owner is None else SAFE,
    )
    order = signed_order(order, traded.exchange, scenario.rig.keys.get(who))
    scenario.orders.setdefault(book_of(traded), []).append((order, resting))
    return order, resting


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


def address_key(who: str) -> int:
    return int(who, 16)


def book_of(traded: TradedPair) -> tuple[str, str]:
    return traded.exchange.address, traded.condition.hex()


def match(scenario: Scenario, step: Step) -> None:
    """Match an order with those that cross it, as an operator that may exceed the limits."""
    traded = scenario.tradable(step.first)
    orders = scenario.orders.get(book_of(traded), [])
    # The operator usually chooses open orders, but at some steps also closed ones.
    chosen = orders if step.third % 16 == 0 else [each for each in orders if is_open(each[1])]
    if not chosen:
        chosen = [rest(scenario, traded, step)]
    taker_order, taker = chosen[-1 - step.actor % min(len(chosen), 6)]
    makers = [(order, maker) for order, maker in chosen if meets(taker, maker)]
    makers = makers[-1 - step.second % MAKERS_MAX :]
    if not makers:
        wanted = counterpart(scenario, taker, step)
        makers = [sign(scenario, traded, wanted)]
    attempt_match(scenario, traded, (taker_order, taker), makers, step)


def counterpart(scenario: Scenario, taker: ExpectedOrder, step: Step) -> Wanted:
    """Return an order of an honest account that takes all of another order at its price."""
    side = 1 - taker.side
    asset, amount = (COLLATERAL, taker.cost) if side == BUY else (taker.token, taker.size)
    able = [who for who in scenario.honest if scenario.expected.units[who, asset] >= amount]
    if not able or step.third % UNPAID_EVERY == 0:
        able = scenario.honest
    who = able[step.second % len(able)]
    return Wanted(who, side, taker.token, taker.cost, taker.size, step.third)


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
    orders = [order for order, _ in makers]
    name, arguments = "matchOrders", match_args(taker_order, orders, fill)
    if step.second & 1:
        name, arguments = "matchPacked", (records(taker_order, orders, fill),)
    operator = scenario.rig.world.operator
    is_simulated = None if step.amount % 2 else simulate(scenario, traded, name, arguments)
    is_matched = scenario.attempt(operator, traded.exchange, name, *arguments)
    # No receiver makes a match fail that was well when it was simulated.
    assert is_simulated in {None, is_matched}, scenario.refusal
    fills = list(zip([maker for _, maker in makers], makings, fees, strict=True))
    if is_matched:
        check_allowed(scenario, traded, taker, taker_fill, fills)
        owed = scenario.done["owed to the fickle wallet"]
        settle(scenario, traded, taker, taker_fee, fills)
        owed = scenario.done["owed to the fickle wallet"] - owed
        scenario.done["changed its mind"] += owed if is_simulated else 0
        take_off(taker, taker_fill, fills)
        check_status(traded, [(taker_order, taker), *makers])
        scenario.done["matched"] += 1
    else:
        assert may_fail(scenario, traded, taker, taker_fill, fills), scenario.refusal
        scenario.done["refused"] += 1
        scenario.done[f"refused: {scenario.refusal}"] += 1
    return is_matched


def simulate(
    scenario: Scenario, traded: TradedPair, name: str, arguments: tuple[object, ...]
) -> bool:
    """Return whether a match succeeds now, a second before it is mined; undo it."""
    evm, operator = scenario.rig.evm, scenario.rig.world.operator
    with evm.rolled_back():
        is_matched = scenario.attempt(operator, traded.exchange, name, *arguments)
    evm.rpc("evm_increaseTime", 1)
    return is_matched


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
    assert traded.exchange.address not in scenario.paused | scenario.without_operator
    spent: Counter[int] = Counter()
    spent[id(taker)] += taker_fill
    for maker, making, _ in fills:
        spent[id(maker)] += making
    assert all(making > 0 for _, making, _ in fills)
    for order in (taker, *(maker for maker, *_ in fills)):
        assert not order.is_cancelled
        assert not is_stopped(scenario, traded, order)
        assert spent[id(order)] <= order.remaining
    parts = [part(taker, maker, making) for maker, making, _ in fills]
    paid, received = (sum(each[place] for each in parts) for place in (0, 1))
    assert received * taker.making >= paid * taker.taking
    assert paid <= taker_fill


def nonce_of(scenario: Scenario, traded: TradedPair, order: ExpectedOrder) -> int:
    return scenario.nonces[traded.exchange.address, address_key(order.who)]


def is_stopped(scenario: Scenario, traded: TradedPair, order: ExpectedOrder) -> bool:
    """Return whether the maker has ended the order by its nonce, by a time or by its Safe's switch."""
    exchange = traded.exchange.address
    if (exchange, order.who) in scenario.silenced:
        return True
    if order.is_v1:
        return order.nonce != nonce_of(scenario, traded, order)
    return order.timestamp < scenario.ended_before[exchange, address_key(order.who)]


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
        or any(
            not 0 < making <= order.remaining for order, making in zip(orders, makings, strict=True)
        )
        or any(scenario.expected.units[key] < amount for key, amount in needs.items())
        or received * taker.making < paid * taker.taking
        or received < taker_fill * taker.taking // taker.making
    )
