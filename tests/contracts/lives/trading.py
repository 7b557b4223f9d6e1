"""Orders and matches. One that the books allow must go through; one that they forbid must not."""

from collections import Counter
from typing import Final

from tests.contracts.lives.arena import Venue, order_digest, signed_order
from tests.contracts.lives.bookkeeping import COLLATERAL, Key, Resting, crosses, fee_max
from tests.contracts.lives.life import Life, Step
from tests.contracts.market import Fill, match_args
from tests.contracts.signing import BUY, ERC1271, OWN_V1, OWN_V2, SELL, Order

MAKERS_MAX: Final = 4


def place(life: Life, step: Step) -> None:
    """Sign an order, of any kind, and leave it with the operator."""
    who, venue = life.person(step.actor), life.venue(step.first)
    is_hostile = who in life.arena.hostile
    profile = OWN_V2 if is_hostile or step.second & 1 else OWN_V1
    side = BUY if step.second & 2 else SELL
    token = venue.pair[step.second >> 2 & 1]
    size = 1 + step.amount % (10 if step.second & 8 else 3_000)
    cost = max(1, size * (35 + step.third % 31) // 100)
    rate = 0 if profile == OWN_V2 else (0, 100, 1_000)[step.second % 3]
    life.salt += 1
    nonce = 0 if profile == OWN_V2 else life.nonces[venue.exchange.address, who_key(who)]
    resting = Resting(who, side, token, cost, size, profile, rate, 0, nonce)
    resting.remaining = resting.making
    order = Order(
        maker=who,
        signer=who,
        token_id=token,
        maker_amount=resting.making,
        taker_amount=resting.taking,
        side=side,
        salt=life.salt,
        nonce=nonce,
        fee_rate_bps=rate,
        profile=profile,
        signature_type=ERC1271 if is_hostile else 0,
    )
    keys = {actor.address: actor.key for actor in life.arena.traders}
    order = signed_order(order, venue.exchange, keys.get(who))
    life.orders.setdefault(book_of(venue), []).append((order, resting))


def who_key(who: str) -> int:
    return int(who, 16)


def book_of(venue: Venue) -> tuple[str, str]:
    return venue.exchange.address, venue.condition.hex()


def match(life: Life, step: Step) -> None:
    """Match an order with those that cross it, as an operator that may ask for too much."""
    venue = life.venue(step.first)
    orders = life.orders.get(book_of(venue), [])
    if not orders:
        return
    # An operator that knows its books, but now and then asks for what is done.
    chosen = orders if step.third % 16 == 0 else [each for each in orders if is_open(each[1])]
    if not chosen:
        return
    taker_order, taker = chosen[-1 - step.actor % min(len(chosen), 6)]
    makers = [(order, maker) for order, maker in chosen if meets(taker, maker)]
    makers = makers[-MAKERS_MAX:]
    if not makers:
        return
    makings = makings_of(taker, makers, step)
    paid, received = totals(taker, makers, makings, venue)
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
    is_matched = life.attempt(life.arena.world.operator, venue.exchange, "matchOrders", *arguments)
    fills = list(zip([maker for _, maker in makers], makings, fees, strict=True))
    if is_matched:
        check_allowed(life, venue, taker, taker_fill, fills)
        settle(life, venue, taker, taker_fee, fills)
        take_off(taker, taker_fill, fills)
        check_status(venue, [(taker_order, taker), *makers])
        life.done["matched"] += 1
    else:
        assert may_fail(life, venue, taker, taker_fill, fills), life.refusal
        life.done["refused"] += 1


def is_open(order: Resting) -> bool:
    return order.remaining > 0 and not order.is_cancelled


def meets(taker: Resting, maker: Resting) -> bool:
    is_direct = taker.side != maker.side
    same = taker.token == maker.token
    return maker is not taker and is_direct == same and crosses(taker, maker)


def makings_of(taker: Resting, makers: list[tuple[Order, Resting]], step: Step) -> list[int]:
    """Return how much is filled of each maker: all that is left, or less, as the taker can take."""
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


def part(taker: Resting, maker: Resting, making: int) -> tuple[int, int]:
    """Return what the taker pays and gets for a fill of a maker."""
    taking = maker.taking_of(making)
    if taker.side != maker.side:
        return taking, making
    if taker.side == BUY:
        return taking - making, taking
    return making, making - taking


def totals(
    taker: Resting, makers: list[tuple[Order, Resting]], makings: list[int], venue: Venue
) -> tuple[int, int]:
    assert taker.token in venue.pair
    parts = [part(taker, maker, making) for (_, maker), making in zip(makers, makings, strict=True)]
    return sum(paid for paid, _ in parts), sum(received for _, received in parts)


FillOf = tuple[Resting, int, int]


def check_allowed(
    life: Life, venue: Venue, taker: Resting, taker_fill: int, fills: list[FillOf]
) -> None:
    """Refuse a match that went through although somebody was not to be filled, or not so."""
    assert venue.exchange.address not in life.paused
    spent: Counter[int] = Counter()
    spent[id(taker)] += taker_fill
    for maker, making, _ in fills:
        spent[id(maker)] += making
    assert all(making > 0 for _, making, _ in fills)
    for order in (taker, *(maker for maker, *_ in fills)):
        assert not order.is_cancelled
        assert order.profile == OWN_V2 or order.nonce == nonce_of(life, venue, order)
        assert spent[id(order)] <= order.remaining
    parts = [part(taker, maker, making) for maker, making, _ in fills]
    paid, received = (sum(each[place] for each in parts) for place in (0, 1))
    assert received * taker.making >= paid * taker.taking
    assert paid <= taker_fill


def nonce_of(life: Life, venue: Venue, order: Resting) -> int:
    return life.nonces[venue.exchange.address, who_key(order.who)]


def settle(life: Life, venue: Venue, taker: Resting, taker_fee: int, fills: list[FillOf]) -> None:
    """Move what a match moves."""
    books, fees = life.books, life.arena.world.fee_receiver
    for maker, making, fee in fills:
        paid, received = part(taker, maker, making)
        taking = maker.taking_of(making)
        gives = COLLATERAL if taker.side == BUY else taker.token
        gets = taker.token if taker.side == BUY else COLLATERAL
        if maker.side != taker.side:
            books.move(gives, taker.who, maker.who, taking)
            books.move(gets, maker.who, taker.who, making)
            books.move(gives, maker.who, fees, fee)
            continue
        theirs = COLLATERAL if taker.side == SELL else maker.token
        given = maker.token if taker.side == SELL else COLLATERAL
        for who, asset, amount in (
            (taker.who, gives, -paid),
            (taker.who, gets, received),
            (maker.who, given, -making),
            (maker.who, theirs, taking),
        ):
            books.change(who, asset, amount)
        sets = taking if taker.side == BUY else -making
        books.change(venue.lock, COLLATERAL, sets)
        books.move(theirs, maker.who, fees, fee)
    received_asset = taker.token if taker.side == BUY else COLLATERAL
    books.move(received_asset, taker.who, fees, taker_fee)


def take_off(taker: Resting, taker_fill: int, fills: list[FillOf]) -> None:
    taker.remaining -= taker_fill
    for maker, making, _ in fills:
        maker.remaining -= making


def check_status(venue: Venue, orders: list[tuple[Order, Resting]]) -> None:
    for order, resting in orders:
        assert venue.exchange.call("orderStatus", order_digest(order, venue.exchange)) == (
            resting.remaining == 0,
            resting.remaining,
        )


def may_fail(
    life: Life, venue: Venue, taker: Resting, taker_fill: int, fills: list[FillOf]
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
        venue.exchange.address in life.paused
        or any(order.is_cancelled or order.who == life.arena.hostile[0] for order in orders)
        or any(
            order.profile == OWN_V1 and order.nonce != nonce_of(life, venue, order)
            for order in orders
        )
        or any(
            not 0 < making <= order.remaining for order, making in zip(orders, makings, strict=True)
        )
        or any(life.books.units[key] < amount for key, amount in needs.items())
        or received * taker.making < paid * taker.taking
        or received < taker_fill * taker.taking // taker.making
    )
