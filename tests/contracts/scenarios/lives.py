"""Lives of all kinds of markets side by side: the scenarios' market and sealed event, beside them a market
of the direct stack, and a market and an event of the optimistic oracle.

That event gets its questions, and its seal, while it is traded. The two events share one lock of collateral,
and the three markets the other; after every step each lock covers what all of its holders may be paid.
"""

from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

from tests.contracts.evm import Contract, Reverted, reverts
from tests.contracts.market import ALLOWANCE_MAX
from tests.contracts.optimistic import (
    ARBITRATION_S,
    BOND,
    DISPUTED,
    LIVENESS_S,
    REQUESTED,
    REWARD,
    SAFETY_S,
    Optimistic,
    deploy_optimistic,
    deploy_optimistic_event,
)
from tests.contracts.resolution import PRICE_NO, PRICE_UNKNOWN, PRICE_YES
from tests.contracts.scenarios.actions import split
from tests.contracts.scenarios.expected import BPS, COLLATERAL
from tests.contracts.scenarios.expected_reports import HOLD_S
from tests.contracts.scenarios.rig import SETS, ScenarioRig, TradedPair, scenario_rig
from tests.contracts.scenarios.scenario import Scenario, Step
from tests.contracts.signing import ZERO_WORD
from typing_extensions import override

from foretell.domain.contracts.neg_risk import market_id
from foretell.domain.values.hexadecimal import parse_address, parse_bytes32
from foretell.domain.values.tokens import token_pair

LATE_QUESTIONS_MAX: Final = 4
LATE_FEE_BIPS: Final = 200
LATE_SETS_MIN: Final = 2_000
DIRECT_TEXT: Final = b"does it rain at the end of a direct life?"
DIRECT_END_S: Final = 3 * 24 * 3600
SETTLING_S: Final = 2 * LIVENESS_S + 60
PRICES: Final = (PRICE_YES, PRICE_NO, PRICE_UNKNOWN)
PAYOUT_BY_PRICE: Final = {PRICE_YES: (1, 0), PRICE_NO: (0, 1), PRICE_UNKNOWN: (1, 1)}
WRONG_BY_PRICE: Final = {PRICE_YES: PRICE_NO, PRICE_NO: PRICE_YES, PRICE_UNKNOWN: PRICE_YES}


class LifeRig(NamedTuple):
    """What lives have beside the scenarios' rig: questions that were asked, and an event without any."""

    base: ScenarioRig
    direct: TradedPair
    direct_ends_at: int
    asked: Optimistic
    market: TradedPair
    late: Optimistic
    operator: Contract
    late_market: bytes


@cache
def life_rig() -> LifeRig:
    """Deploy the optimistic stack beside the scenarios' markets, once."""
    base = scenario_rig()
    neg_risk, world = base.neg_risk, base.world
    stack = deploy_optimistic(neg_risk.resolution)
    asked = replace(stack, text=b"does it rain in a life?")
    late, operator = deploy_optimistic_event(neg_risk, stack)
    for account in (stack.proposer, stack.disputer):
        world.collateral.send("mint", account, 100 * BOND, sender=world.minter)
    world.collateral.send("mint", stack.creator, 100 * REWARD, sender=world.minter)
    for adapter in (asked.adapter, late.adapter):
        world.collateral.send("approve", adapter.address, ALLOWANCE_MAX, sender=stack.creator)
    asked.ask()
    base.neg_risk.resolution.ask_until(DIRECT_END_S, DIRECT_TEXT)
    direct_ends_at = base.evm.now() + DIRECT_END_S
    direct = open_plain(base, base.neg_risk.resolution.condition_id(DIRECT_TEXT))
    market = open_plain(base, asked.condition)
    event = LATE_FEE_BIPS, b"who comes late?"
    event_id = market_id(parse_address(operator.address), *event, parse_address(stack.creator))
    operator.send("prepareMarket", *event, sender=stack.creator)
    event_market = bytes.fromhex(event_id[2:])
    return LifeRig(base, direct, direct_ends_at, asked, market, late, operator, event_market)


def open_plain(base: ScenarioRig, condition: bytes) -> TradedPair:
    """Register the tokens of a condition, and give sets of it to all who take tokens."""
    world, collateral = base.world, base.world.collateral
    pair = token_pair(parse_address(collateral.address), parse_bytes32("0x" + condition.hex()))
    tokens = pair.yes, pair.no
    world.exchange.send("registerToken", *tokens, condition, sender=world.registrar)
    refusing = base.refusing
    able = (*(actor.address for actor in base.traders), *base.safes, *base.wallets)
    for who in (each for each in able if each not in refusing):
        # Newly minted, so that the scenarios beside the lives begin as without them.
        collateral.send("mint", who, SETS, sender=world.minter)
        sets = collateral.address, ZERO_WORD, condition, [1, 2], SETS
        world.ctf.send("splitPosition", *sets, sender=who)
    return TradedPair(world.exchange, world.ctf, tokens, condition, world.ctf.address)


class Life(Scenario):
    """One random life of all markets."""

    def __init__(self) -> None:
        self.life = life_rig()
        self.late_pairs: list[TradedPair] = []
        self.late_asked: list[Optimistic] = []
        self.late_answers: dict[int, bool] = {}
        self.late_winner: int | None = None
        self.late_converted = 0
        self.is_sealed = False
        self.price: int | None = None
        self.arbitrated_until: dict[bytes, int] = {}
        self.direct_flagged_at = 0
        self.has_direct_adapter = True
        super().__init__()

    @property
    @override
    def pairs(self) -> tuple[TradedPair, ...]:
        return (*self.plain_pairs, *self.rig.questions, *self.late_pairs)

    @override
    def traded(self, number: int) -> TradedPair:
        return self.pairs[number % len(self.pairs)]

    @property
    @override
    def plain_pairs(self) -> tuple[TradedPair, ...]:
        return self.rig.market, self.life.market, self.life.direct

    @override
    def check_covered(self) -> None:
        """Check that each lock covers what its markets, or its events, may pay together."""
        expected = self.expected
        for traded in self.plain_pairs:
            if not self.is_answered(traded):
                assert expected.held(traded.pair[0]) == expected.held(traded.pair[1])
        plain = [each.pair for each in self.plain_pairs]
        payouts = [self.payout_of(each) for each in self.plain_pairs]
        locked = expected.units[self.rig.market.lock, COLLATERAL] - self.market_base
        assert locked >= expected.owed(plain, payouts)
        sealed = [each.pair for each in self.rig.questions]
        late = [each.pair for each in self.late_pairs]
        most = max(expected.owed(sealed, each) for each in self.outcomes())
        most += max(expected.owed(late, each) for each in self.late_outcomes())
        held = expected.units[self.rig.questions[0].lock, COLLATERAL]
        assert held - self.event_base >= most

    def late_outcomes(self) -> list[list[tuple[int, int]]]:
        """Return the possible payouts of the late event: at most one Yes, and the given answers."""
        count = len(self.late_pairs)
        return [
            [(1, 0) if index == winner else (0, 1) for index in range(count)]
            for winner in (None, *range(count))
            if all((index == winner) == is_yes for index, is_yes in self.late_answers.items())
        ]

    @property
    def neither_open(self) -> bool:
        """Whether the optimistic market and every question of the late event are answered."""
        return self.is_answered(self.life.market) and len(self.late_answers) == len(self.late_pairs)


def add_option(life: Life, step: Step) -> None:
    """Ask one more question of the late event, which is refused once that is sealed."""
    rig, count = life.life, len(life.late_pairs)
    if count == LATE_QUESTIONS_MAX and not life.is_sealed:
        return
    neg_risk, creator = life.rig.neg_risk, rig.late.creator
    question = replace(rig.late, text=b"does option %d come late?" % (count + life.is_sealed * 10))
    if question.asked_at == 0:
        # Terms of its own, at least those of the deployment.
        question.ask(bond=BOND * (step.second % 3), liveness=LIVENESS_S * (step.third % 3))
    arguments = rig.late_market, b"option", question.question
    is_added = life.attempt(creator, rig.operator, "prepareQuestion", *arguments)
    assert is_added != life.is_sealed, life.refusal
    if not is_added:
        return
    pair = neg_risk.tokens(count, rig.late_market)
    condition = neg_risk.condition(count, rig.late_market)
    traded = TradedPair(
        neg_risk.exchange,
        neg_risk.adapter,
        (pair.yes, pair.no),
        condition,
        neg_risk.wrapped.address,
    )
    register(life, traded)
    life.late_pairs.append(traded)
    life.late_asked.append(question)
    for who in life.honest:
        amount = LATE_SETS_MIN + step.amount % LATE_SETS_MIN
        actor, first = life.accounts.index(who), len(life.pairs) - 1
        split(life, step._replace(actor=actor, first=first, amount=amount))


def register(life: Life, traded: TradedPair) -> None:
    """Register a pair; where the registrar was removed, the admin appoints it again first."""
    exchange, registrar = traded.exchange, life.rig.world.registrar
    arguments = *traded.pair, traded.condition
    if exchange.address in life.without_registrar:
        assert not life.attempt(registrar, exchange, "registerToken", *arguments)
        assert life.attempt(life.admin_of(exchange), exchange, "addRegistrar", registrar)
        life.without_registrar.discard(exchange.address)
    assert life.attempt(registrar, exchange, "registerToken", *arguments)


def seal(life: Life, step: Step) -> None:
    """Seal the late event at some steps; nobody but its creator does, and once."""
    if step.second % 4 or len(life.late_pairs) < step.third % 4:
        return
    rig = life.life
    assert not life.attempt(life.account(step.actor), rig.operator, "sealMarket", rig.late_market)
    is_sealed = life.attempt(rig.late.creator, rig.operator, "sealMarket", rig.late_market)
    assert is_sealed != life.is_sealed
    life.is_sealed = True


def convert_late(life: Life, step: Step) -> None:
    """Convert in the late event, which is refused before its seal."""
    event, count = life.rig.neg_risk, len(life.late_pairs)
    # Mostly an account that has got sets of the late event.
    who = (life.trader if step.second % 4 else life.account)(step.actor)
    sets = 1 << (count if step.third % 4 else LATE_QUESTIONS_MAX)
    index_set, amount = step.first % sets, step.amount % 100
    given = [index for index in range(count) if index_set >> index & 1]
    received = [index for index in range(count) if index not in given]
    pairs, expected = [each.pair for each in life.late_pairs], life.expected
    is_known = life.is_sealed and count > 1 and 0 < index_set < 1 << count and amount > 0
    arguments = life.life.late_market, index_set, amount
    if not life.attempt(who, event.adapter, "convertPositions", *arguments):
        short = any(expected.units[who, pairs[index][1]] < amount for index in given)
        assert not is_known or short or (who in life.refusing and received), life.refusal
        life.done["refused before the seal"] += life.refusal == "MarketNotSealed"
        return
    assert is_known
    fee, vault, lock = amount * LATE_FEE_BIPS // BPS, event.vault, event.wrapped.address
    for index in given:
        expected.change(who, pairs[index][1], -amount)
    for index in received:
        expected.change(who, pairs[index][0], amount - fee)
        expected.change(vault, pairs[index][0], fee)
    expected.move(COLLATERAL, lock, who, (len(given) - 1) * (amount - fee))
    expected.move(COLLATERAL, lock, vault, (len(given) - 1) * fee)
    life.late_converted += amount
    life.done["converted late"] += 1


def go_on(life: Life, question: Optimistic, price: int, step: Step) -> int | None:
    """Make the next call about a question that ends with this price; return the price once it is answered.

    A wrong answer that somebody proposes is disputed at once. At some steps the admin answers instead. Where
    the arbiter is late, the price is the fall-back's.
    """
    if step.second % 8 == 1:
        answer_manually(life, question, PAYOUT_BY_PRICE[price])
        return price
    question.wait(SETTLING_S)
    state, now = question.state(), life.rig.evm.now()
    over_at = life.arbitrated_until.get(question.text, now)
    if state == REQUESTED and step.third % 3 == 0:
        question.propose(WRONG_BY_PRICE[price] if step.third % 2 else price)
        question.dispute()
        life.arbitrated_until[question.text] = now + ARBITRATION_S
        life.done["disputed"] += 1
    elif state == REQUESTED:
        question.propose(price)
    elif state == DISPUTED and now < over_at:
        question.decide(price)
    else:
        try:
            question.resolve()
        except Reverted:
            return None
        is_plain = question is life.life.asked
        return price if state != DISPUTED else PRICE_UNKNOWN if is_plain else PRICE_NO
    return None


def answer_manually(life: Life, question: Optimistic, payouts: tuple[int, int]) -> None:
    """Flag a question and answer it an hour later, as the admin; earlier it is refused."""
    answer = question.question, list(payouts)
    question.adapter.send("flag", question.question, sender=question.admin)
    with reverts("SafetyPeriodNotPassed"):
        question.adapter.send("resolveManually", *answer, sender=question.admin)
    question.wait(SAFETY_S)
    question.adapter.send("resolveManually", *answer, sender=question.admin)
    life.done["answered by the admin"] += 1


def answer_asked(life: Life, step: Step) -> None:
    """Bring the optimistic market nearer to its answer."""
    market = life.life.market
    if life.is_answered(market):
        return
    if life.price is None:
        life.price = PRICES[step.amount % len(PRICES)]
    price = go_on(life, life.life.asked, life.price, step)
    if price is not None:
        payout = PAYOUT_BY_PRICE[price]
        for token, numerator in zip(market.pair, payout, strict=True):
            life.expected.payout_by_token[token] = numerator, sum(payout)
        life.done["answered"] += 1


def answer_late(life: Life, step: Step) -> None:
    """Bring a question of the late event nearer to its answer, sealed or not."""
    if not life.late_pairs:
        return
    index = step.first % len(life.late_pairs)
    if index in life.late_answers:
        return
    if life.late_winner is None:
        life.late_winner = step.amount % (LATE_QUESTIONS_MAX + 1)
    question = life.late_asked[index]
    price = go_on(life, question, PRICE_YES if index == life.late_winner else PRICE_NO, step)
    if price is not None:
        is_yes = price == PRICE_YES
        pass_late_on(life, index, step)
        life.late_answers[index] = is_yes
        yes, no = life.late_pairs[index].pair
        life.expected.payout_by_token |= {yes: (int(is_yes), 1), no: (int(not is_yes), 1)}
        life.done["answered late"] += 1


def pass_late_on(life: Life, index: int, step: Step) -> None:
    """Pass a report of the late event on; a flag holds it up until it is taken back, or for a week."""
    rig, admin = life.life, life.rig.neg_risk.resolution.admin
    question, who = life.rig.neg_risk.question(index, rig.late_market), life.accounts[0]
    if step.third % 4 == 1:
        rig.operator.send("flagQuestion", question, sender=admin)
        # In an event that has its Yes nothing holds a No up.
        if True not in life.late_answers.values():
            assert not life.attempt(who, rig.operator, "resolveQuestion", question)
            assert life.refusal == "Flagged"
            life.done["held up late"] += 1
        if step.amount % 2:
            rig.operator.send("unflagQuestion", question, sender=admin)
        else:
            life.rig.evm.rpc("evm_increaseTime", HOLD_S)
    assert life.attempt(who, rig.operator, "resolveQuestion", question), life.refusal
