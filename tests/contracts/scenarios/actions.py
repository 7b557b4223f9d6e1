"""Actions other than trading: split, merge, give, cancel, pause, convert, answer and redeem."""

from tests.contracts.scenarios.expected import BPS, COLLATERAL, QUESTIONS
from tests.contracts.scenarios.orders import address_key, book_of, is_open
from tests.contracts.scenarios.rig import CONVERSION_FEE_BIPS, TradedPair
from tests.contracts.scenarios.scenario import Scenario, Step
from tests.contracts.signing import ZERO_WORD


def split(scenario: Scenario, step: Step) -> None:
    who, traded = scenario.account(step.actor), scenario.traded(step.first)
    amount = step.amount % 5_000
    if set_call(scenario, who, traded, "splitPosition", amount):
        scenario.expected.split(who, traded.lock, traded.pair, amount)
    else:
        refused = who in scenario.refusing
        assert refused or scenario.expected.units[who, COLLATERAL] < amount


def merge(scenario: Scenario, step: Step) -> None:
    who, traded = scenario.account(step.actor), scenario.traded(step.first)
    amount = step.amount % 5_000
    if set_call(scenario, who, traded, "mergePositions", amount):
        scenario.expected.merge(who, traded.lock, traded.pair, amount)
    else:
        assert min(scenario.expected.units[who, token] for token in traded.pair) < amount


def set_call(scenario: Scenario, who: str, traded: TradedPair, name: str, amount: int) -> bool:
    collateral = scenario.rig.world.collateral.address
    arguments = (collateral, ZERO_WORD, traded.condition, [1, 2], amount)
    return scenario.attempt(who, traded.splitter, name, *arguments)


def give(scenario: Scenario, step: Step) -> None:
    """Transfer tokens to an account, or to an exchange or the adapter, which refuse them."""
    who, traded = scenario.account(step.actor), scenario.traded(step.first)
    token, amount = traded.pair[step.second % 2], step.amount % 2_000
    event = scenario.rig.neg_risk
    closed = (event.adapter.address, event.exchange.address, scenario.rig.world.exchange.address)
    places = (*scenario.accounts, *closed)
    receiver = places[step.third % len(places)]
    arguments = (who, receiver, token, amount, b"")
    if scenario.attempt(who, scenario.rig.world.ctf, "safeTransferFrom", *arguments):
        assert receiver not in closed
        scenario.expected.move(token, who, receiver, amount)
    else:
        refusing = (*closed, *scenario.refusing)
        assert receiver in refusing or scenario.expected.units[who, token] < amount


def misdirect(scenario: Scenario, step: Step) -> None:
    """Transfer collateral to an exchange or an adapter, from where no account may receive it."""
    who, amount = scenario.trader(step.actor), step.amount % 100
    event = scenario.rig.neg_risk
    places = (event.adapter.address, event.exchange.address, scenario.rig.world.exchange.address)
    receiver = places[step.first % len(places)]
    if scenario.attempt(who, scenario.rig.world.collateral, "transfer", receiver, amount):
        scenario.expected.move(COLLATERAL, who, receiver, amount)


def cancel(scenario: Scenario, step: Step) -> None:
    """Cancel an order, as its maker or another account, paused or not."""
    traded, who = scenario.traded(step.first), scenario.account(step.actor)
    orders = scenario.orders.get(book_of(traded), [])
    if not orders:
        return
    order, resting = orders[-1 - step.second % len(orders)]
    # The owner of a Safe may cancel for it.
    owner = scenario.rig.safes.get(resting.who)
    may_cancel = who == resting.who or (owner is not None and who == owner.address)
    is_due = is_open(resting) and may_cancel
    is_cancelled = scenario.attempt(who, traded.exchange, "cancelOrder", order.fields)
    assert is_cancelled == is_due
    if is_cancelled:
        resting.is_cancelled = True


def claim(scenario: Scenario, step: Step) -> None:
    """Claim refused tokens for any account, some of which refuse them again."""
    traded = scenario.traded(step.first)
    # Often a wallet that re-enters: claims leave it more gas than deliveries of matches.
    reentering = [each.wallet for each in scenario.rig.reentering]
    accounts = reentering if step.third % 2 else scenario.accounts
    who = (*scenario.rig.refusing, scenario.rig.fickle)[step.actor % 3]
    receiver = accounts[step.third % len(accounts)]
    claim_token(scenario, traded, who, traded.pair[step.second % 2], receiver)


def claim_token(
    scenario: Scenario, traded: TradedPair, who: str, token: int, receiver: str
) -> None:
    exchange = traded.exchange
    owed = scenario.owed[exchange.address, who, token]
    is_due = owed > 0 and receiver not in scenario.refusing
    assert scenario.attempt(who, exchange, "claimTokens", token, receiver) == is_due
    if is_due:
        scenario.expected.move(token, exchange.address, receiver, owed)
        scenario.owed[exchange.address, who, token] = 0
        scenario.done["claimed"] += 1


def claim_all(scenario: Scenario) -> None:
    """Claim everything that was refused, for an account that takes it."""
    for traded in scenario.pairs:
        for who in scenario.rig.wallets:
            for token in traded.pair:
                claim_token(scenario, traded, who, token, scenario.honest[0])


def raise_nonce(scenario: Scenario, step: Step) -> None:
    traded, who = scenario.traded(step.first), scenario.account(step.actor)
    if step.second % 16 == 0:
        assert scenario.attempt(who, traded.exchange, "incrementNonce")
        scenario.nonces[traded.exchange.address, address_key(who)] += 1


def pause(scenario: Scenario, step: Step) -> None:
    """Pause or unpause an exchange, as the admin; another account is refused."""
    exchange = scenario.traded(step.first).exchange
    name = "pauseTrading" if step.second % 16 == 1 else "unpauseTrading"
    assert not scenario.attempt(scenario.account(step.actor), exchange, name)
    assert scenario.attempt(scenario.admin_of(exchange), exchange, name)
    (scenario.paused.add if name == "pauseTrading" else scenario.paused.discard)(exchange.address)


def convert(scenario: Scenario, step: Step) -> None:
    event, who = scenario.rig.neg_risk, scenario.account(step.actor)
    index_set, amount = step.first % 10, step.amount % 1_000
    pairs = [traded.pair for traded in scenario.rig.questions]
    given = [index for index in range(QUESTIONS) if index_set >> index & 1]
    received = [index for index in range(QUESTIONS) if index not in given]
    is_known = 0 < index_set < 1 << QUESTIONS and amount > 0
    market, vault, lock = scenario.rig.event_market, event.vault, event.wrapped.address
    if scenario.attempt(who, event.adapter, "convertPositions", market, index_set, amount):
        assert is_known
        fee = amount * CONVERSION_FEE_BIPS // BPS
        for index in given:
            scenario.expected.change(who, pairs[index][1], -amount)
        for index in received:
            scenario.expected.change(who, pairs[index][0], amount - fee)
            scenario.expected.change(vault, pairs[index][0], fee)
        scenario.expected.move(COLLATERAL, lock, who, (len(given) - 1) * (amount - fee))
        scenario.expected.move(COLLATERAL, lock, vault, (len(given) - 1) * fee)
        scenario.expected.converted += amount
        scenario.done["converted"] += 1
    else:
        short = any(scenario.expected.units[who, pairs[index][1]] < amount for index in given)
        assert not is_known or short or (who in scenario.refusing and received)


def answer_market(scenario: Scenario, step: Step) -> None:
    """Resolve the plain market at some steps, and always at the end."""
    market, world = scenario.rig.market, scenario.rig.world
    if market.pair[0] in scenario.expected.payout_by_token or step.second % 16:
        return
    payouts = ((1, 0), (0, 1), (1, 1), (3, 5))[step.first % 4]
    world.ctf.send("reportPayouts", world.question, list(payouts), sender=world.oracle)
    for token, numerator in zip(market.pair, payouts, strict=True):
        scenario.expected.payout_by_token[token] = (numerator, sum(payouts))


def redeem(scenario: Scenario, step: Step) -> None:
    """Redeem a pair, as any account, paused or not."""
    who, traded = scenario.account(step.actor), scenario.traded(step.first)
    redeem_pair(scenario, who, traded)


def redeem_all(scenario: Scenario, who: str) -> None:
    for traded in scenario.pairs:
        if traded.pair[0] in scenario.expected.payout_by_token:
            redeem_pair(scenario, who, traded)


def redeem_pair(scenario: Scenario, who: str, traded: TradedPair) -> None:
    held = [scenario.expected.units[who, token] for token in traded.pair]
    collateral = scenario.rig.world.collateral.address
    if traded.splitter is scenario.rig.world.ctf:
        arguments: tuple[object, ...] = (collateral, ZERO_WORD, traded.condition, [1, 2])
    else:
        arguments = (traded.condition, held)
    is_redeemed = scenario.attempt(who, traded.splitter, "redeemPositions", *arguments)
    assert is_redeemed == (traded.pair[0] in scenario.expected.payout_by_token)
    if is_redeemed:
        for token, amount in zip(traded.pair, held, strict=True):
            scenario.expected.redeem(who, traded.lock, token, amount)
