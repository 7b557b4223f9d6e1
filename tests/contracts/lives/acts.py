"""What else everybody does: split, merge, give, cancel, pause, convert, answer, redeem."""

from tests.contracts.evm import reverts
from tests.contracts.lives.arena import Venue
from tests.contracts.lives.bookkeeping import COLLATERAL, QUESTIONS
from tests.contracts.lives.life import Life, Step
from tests.contracts.lives.trading import book_of, is_open, who_key
from tests.contracts.resolution import PRICE_NO, PRICE_YES
from tests.contracts.signing import ZERO_WORD


def split(life: Life, step: Step) -> None:
    who, venue = life.person(step.actor), life.venue(step.first)
    amount = step.amount % 5_000
    if set_call(life, who, venue, "splitPosition", amount):
        life.books.split(who, venue.lock, venue.pair, amount)
    else:
        refused = who == life.arena.hostile[0]
        assert refused or life.books.units[who, COLLATERAL] < amount


def merge(life: Life, step: Step) -> None:
    who, venue = life.person(step.actor), life.venue(step.first)
    amount = step.amount % 5_000
    if set_call(life, who, venue, "mergePositions", amount):
        life.books.merge(who, venue.lock, venue.pair, amount)
    else:
        assert min(life.books.units[who, token] for token in venue.pair) < amount


def set_call(life: Life, who: str, venue: Venue, name: str, amount: int) -> bool:
    collateral = life.arena.world.collateral.address
    arguments = (collateral, ZERO_WORD, venue.condition, [1, 2], amount)
    return life.attempt(who, venue.splitter, name, *arguments)


def give(life: Life, step: Step) -> None:
    """Transfer tokens to another, to an exchange or to the adapter, which send them back."""
    who, venue = life.person(step.actor), life.venue(step.first)
    token, amount = venue.pair[step.second % 2], step.amount % 2_000
    event = life.arena.neg_risk
    closed = (event.adapter.address, event.exchange.address, life.arena.world.exchange.address)
    places = (*life.people, *closed)
    receiver = places[step.third % len(places)]
    arguments = (who, receiver, token, amount, b"")
    if life.attempt(who, life.arena.world.ctf, "safeTransferFrom", *arguments):
        assert receiver not in closed
        life.books.move(token, who, receiver, amount)
    else:
        refusing = (*closed, life.arena.hostile[0])
        assert receiver in refusing or life.books.units[who, token] < amount


def stray(life: Life, step: Step) -> None:
    """Lose collateral to an exchange or an adapter: it must help nobody."""
    who, amount = life.trader(step.actor), step.amount % 100
    event = life.arena.neg_risk
    places = (event.adapter.address, event.exchange.address, life.arena.world.exchange.address)
    receiver = places[step.first % len(places)]
    if life.attempt(who, life.arena.world.collateral, "transfer", receiver, amount):
        life.books.move(COLLATERAL, who, receiver, amount)


def cancel(life: Life, step: Step) -> None:
    """Cancel an order, by its maker or by somebody else; no pause stops it."""
    venue, who = life.venue(step.first), life.person(step.actor)
    orders = life.orders.get(book_of(venue), [])
    if not orders:
        return
    order, resting = orders[-1 - step.second % len(orders)]
    is_due = is_open(resting) and who == resting.who
    is_cancelled = life.attempt(who, venue.exchange, "cancelOrder", order.fields)
    assert is_cancelled == is_due
    if is_cancelled:
        resting.is_cancelled = True


def raise_nonce(life: Life, step: Step) -> None:
    venue, who = life.venue(step.first), life.person(step.actor)
    if step.second % 16 == 0:
        assert life.attempt(who, venue.exchange, "incrementNonce")
        life.nonces[venue.exchange.address, who_key(who)] += 1


def pause(life: Life, step: Step) -> None:
    """Pause an exchange or let it go on, by the admin or by somebody who must not."""
    exchange, world = life.venue(step.first).exchange, life.arena.world
    name = "pauseTrading" if step.second % 8 == 0 else "unpauseTrading"
    assert not life.attempt(life.person(step.actor), exchange, name)
    assert life.attempt(world.admin, exchange, name)
    (life.paused.add if name == "pauseTrading" else life.paused.discard)(exchange.address)


def convert(life: Life, step: Step) -> None:
    event, who = life.arena.neg_risk, life.person(step.actor)
    index_set, amount = step.first % 10, step.amount % 1_000
    pairs = [venue.pair for venue in life.arena.questions]
    given = [index for index in range(QUESTIONS) if index_set >> index & 1]
    received = [index for index in range(QUESTIONS) if index not in given]
    is_known = 0 < index_set < 1 << QUESTIONS and amount > 0
    if life.attempt(who, event.adapter, "convertPositions", event.market(), index_set, amount):
        assert is_known
        for index in given:
            life.books.change(who, pairs[index][1], -amount)
        for index in received:
            life.books.change(who, pairs[index][0], amount)
        life.books.move(COLLATERAL, event.wrapped.address, who, (len(given) - 1) * amount)
        life.books.converted += amount
        life.done["converted"] += 1
    else:
        short = any(life.books.units[who, pairs[index][1]] < amount for index in given)
        assert not is_known or short or (who == life.arena.hostile[0] and received)


def answer_market(life: Life, step: Step) -> None:
    """Resolve the plain market, now and then; at the end for certain."""
    market, world = life.arena.market, life.arena.world
    if market.pair[0] in life.books.payout_by_token or step.second % 16:
        return
    payouts = ((1, 0), (0, 1), (1, 1), (3, 5))[step.first % 4]
    world.ctf.send("reportPayouts", world.question, list(payouts), sender=world.oracle)
    for token, numerator in zip(market.pair, payouts, strict=True):
        life.books.payout_by_token[token] = (numerator, sum(payouts))


def answer_question(life: Life, step: Step) -> None:
    """Answer a question, now and then; a second Yes is refused."""
    index, is_yes = step.actor % QUESTIONS, step.amount % 3 == 0
    if index in life.answered or step.second % 16:
        return
    is_second = is_yes and True in life.answered.values()
    price = PRICE_YES if is_yes else PRICE_NO
    if is_second:
        with reverts("MarketAlreadyDetermined"):
            life.arena.neg_risk.answer(index, price)
        return
    life.arena.neg_risk.answer(index, price)
    life.answered[index] = is_yes
    yes, no = life.arena.questions[index].pair
    life.books.payout_by_token |= {yes: (int(is_yes), 1), no: (int(not is_yes), 1)}


def redeem(life: Life, step: Step) -> None:
    """Redeem a pair, by whoever holds it, whatever is paused."""
    who, venue = life.person(step.actor), life.venue(step.first)
    redeem_pair(life, who, venue)


def redeem_all(life: Life, who: str) -> None:
    for venue in (life.arena.market, *life.arena.questions):
        redeem_pair(life, who, venue)


def redeem_pair(life: Life, who: str, venue: Venue) -> None:
    held = [life.books.units[who, token] for token in venue.pair]
    collateral = life.arena.world.collateral.address
    if venue is life.arena.market:
        arguments: tuple[object, ...] = (collateral, ZERO_WORD, venue.condition, [1, 2])
    else:
        arguments = (venue.condition, held)
    is_redeemed = life.attempt(who, venue.splitter, "redeemPositions", *arguments)
    assert is_redeemed == (venue.pair[0] in life.books.payout_by_token)
    if is_redeemed:
        for token, amount in zip(venue.pair, held, strict=True):
            life.books.redeem(who, venue.lock, token, amount)
