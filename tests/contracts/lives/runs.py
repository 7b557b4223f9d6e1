"""Lives from beginning to end: every actor's acts on the real contracts, and beside the books.

A step that the books allow must go through; one that goes through must change exactly what the books
say; after every step the collateral that is held covers what is owed; at the end it comes out even.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from tests.contracts.lives.acts import (
    answer_market,
    answer_question,
    cancel,
    convert,
    give,
    merge,
    pause,
    raise_nonce,
    redeem,
    redeem_all,
    split,
    stray,
)
from tests.contracts.lives.bookkeeping import COLLATERAL, QUESTIONS
from tests.contracts.lives.life import Life, Step, steps_of
from tests.contracts.lives.trading import match, place
from tests.contracts.neg_risk import BURN

ACTS: Final[tuple[Callable[[Life, Step], None], ...]] = (
    *(split, split, split, merge, give, stray),
    *(place, place, place, place, match, match, match, match, match, match),
    *(cancel, raise_nonce, pause, convert, convert),
    *(answer_market, answer_question, redeem),
)


def run(script: bytes) -> Counter[str]:
    """Live, settle everything, compare all that there is; return what was done."""
    life = Life()
    with life.arena.evm.rolled_back():
        for step in steps_of(script):
            take(life, step)
        finish(life)
    return life.done


def take(life: Life, step: Step) -> None:
    act = ACTS[step.act % len(ACTS)]
    life.books.touched.clear()
    act(life, step)
    life.done[act.__name__] += 1
    life.compare(life.books.touched)
    life.check_covered()


def finish(life: Life) -> None:
    """Answer all, redeem all, and see that what was locked is gone to the unit."""
    life.books.touched.clear()
    answer_market(life, Step(0, 0, 0, 0, 0, 0))
    for index in range(QUESTIONS):
        answer_question(life, Step(0, index, 0, 0, 0, 1))
    for who in (*life.people, life.arena.world.fee_receiver):
        redeem_all(life, who)
    event, market = life.arena.neg_risk, life.arena.market
    if True not in life.answered.values() and life.books.converted:
        event.adapter.send("releaseUnclaimed", event.market(), QUESTIONS, sender=life.people[0])
        life.books.move(COLLATERAL, event.wrapped.address, event.vault, life.books.converted)
    life.compare({key for key, _ in life.books.units.items() if key[0] != BURN})
    assert life.books.units[event.wrapped.address, COLLATERAL] == 0
    left = life.books.units[market.lock, COLLATERAL] - life.market_base
    # Halves are rounded down, once for each holder and side.
    assert 0 <= left <= 2 * (len(life.people) + 1)
