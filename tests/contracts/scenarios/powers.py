"""Actions of admins, of makers who end many orders, and of anybody who sweeps."""

from tests.contracts.evm import Contract
from tests.contracts.scenarios.expected import COLLATERAL
from tests.contracts.scenarios.orders import address_key
from tests.contracts.scenarios.scenario import Scenario, Step
from tests.contracts.signing import ZERO

from foretell.domain.values.hexadecimal import keccak256, parse_address, word_of
from foretell.domain.values.tokens import condition_id, token_pair

DAY_S = 24 * 3600
WAITS_DAYS = (0, 0, 1, 1, 2, 2, 8)
RATES_BPS = (0, 100, 250, 400)


def end_before(scenario: Scenario, step: Step) -> None:
    """End the v2 orders that an account has signed so far, at some steps."""
    exchange, who = scenario.traded(step.first).exchange, scenario.account(step.actor)
    if step.second % 8:
        return
    key = exchange.address, address_key(who)
    timestamp = scenario.salt + 1
    is_later = timestamp > scenario.ended_before[key]
    assert scenario.attempt(who, exchange, "cancelBefore", timestamp) == is_later
    scenario.ended_before[key] = timestamp


def silence_owner(scenario: Scenario, step: Step) -> None:
    """Have a Safe switch its owner off, or on again."""
    exchange = scenario.traded(step.first).exchange
    safe = [*scenario.rig.safes][step.actor % len(scenario.rig.safes)]
    is_allowed = step.second % 8 != 1
    assert scenario.attempt(safe, exchange, "setOwnerSigning", is_allowed)
    (scenario.silenced.discard if is_allowed else scenario.silenced.add)((exchange.address, safe))


def change_fees(scenario: Scenario, step: Step) -> None:
    """Change the limit of v2 fees or the fee receiver, as the admin; another account is refused."""
    exchange = scenario.traded(step.first).exchange
    admin = scenario.admin_of(exchange)
    fees, rate_bps = scenario.fees[exchange.address], RATES_BPS[step.second % len(RATES_BPS)]
    receiver = scenario.rig.fee_receivers[step.third % len(scenario.rig.fee_receivers)]
    assert not scenario.attempt(scenario.account(step.actor), exchange, "setFeeReceiver", receiver)
    assert scenario.attempt(admin, exchange, "setMaxFeeRateBps", rate_bps)
    assert scenario.attempt(admin, exchange, "setFeeReceiver", receiver)
    fees.announce(rate_bps, scenario.rig.evm.now())
    fees.receiver = receiver
    assert exchange.call("maxFeeRateBps") == fees.rate_at(scenario.rig.evm.now())


def change_operator(scenario: Scenario, step: Step) -> None:
    """Remove the operator of an exchange at some steps, and appoint it again."""
    exchange, world = scenario.traded(step.first).exchange, scenario.rig.world
    is_removed = step.second % 16 == 1
    name = "removeOperator" if is_removed else "addOperator"
    assert not scenario.attempt(scenario.account(step.actor), exchange, name, world.operator)
    assert scenario.attempt(scenario.admin_of(exchange), exchange, name, world.operator)
    missing = scenario.without_operator
    (missing.add if is_removed else missing.discard)(exchange.address)


def change_registrar(scenario: Scenario, step: Step) -> None:
    """Remove the registrar of an exchange at some steps, or appoint it again; then it registers a pair."""
    exchange, world = scenario.traded(step.first).exchange, scenario.rig.world
    is_removed = step.second % 4 == 1
    name = "removeRegistrar" if is_removed else "addRegistrar"
    assert not scenario.attempt(scenario.account(step.actor), exchange, name, world.registrar)
    assert scenario.attempt(scenario.admin_of(exchange), exchange, name, world.registrar)
    pair = new_pair(scenario, exchange)
    assert not scenario.attempt(scenario.account(step.actor), exchange, "registerToken", *pair)
    assert scenario.attempt(world.registrar, exchange, "registerToken", *pair) != is_removed
    missing = scenario.without_registrar
    (missing.add if is_removed else missing.discard)(exchange.address)
    scenario.done["registrar removed"] += is_removed


def new_pair(scenario: Scenario, exchange: Contract) -> tuple[int, int, bytes]:
    """Prepare a condition that nobody trades, and return its tokens and its id."""
    world = scenario.rig.world
    scenario.salt += 1
    question = keccak256(b"registered %d" % scenario.salt)
    world.ctf.send("prepareCondition", world.oracle, question, 2, sender=world.oracle)
    condition = condition_id(parse_address(world.oracle), word_of(question))
    pair = token_pair(parse_address(exchange.call("getTokenCollateral")), condition)
    return pair.yes, pair.no, bytes.fromhex(condition[2:])


def change_admin(scenario: Scenario, step: Step) -> None:
    """Offer the admin's role, take the offer back, or accept it; a former admin has no power."""
    exchange, candidates = scenario.traded(step.first).exchange, scenario.rig.admins
    admin, stranger = scenario.admins[exchange.address], scenario.account(step.actor)
    if step.third % 2:
        offered = (*candidates, ZERO)[step.second % 3]
        assert not scenario.attempt(stranger, exchange, "transferAdmin", offered)
        assert scenario.attempt(admin.now, exchange, "transferAdmin", offered)
        admin.offered = offered
    for who in (stranger, *candidates)[: 1 + step.amount % 3]:
        is_accepted = scenario.attempt(who, exchange, "acceptAdmin")
        assert is_accepted == (who == admin.offered)
        if is_accepted:
            admin.now, admin.offered = who, ZERO
            scenario.done["another admin"] += 1
    former = candidates[admin.now == candidates[0]]
    assert not scenario.attempt(former, exchange, "pauseTrading")


def wait(scenario: Scenario, step: Step) -> None:
    days = WAITS_DAYS[step.second % len(WAITS_DAYS)]
    scenario.rig.evm.rpc("evm_increaseTime", days * DAY_S + 1)


def sweep(scenario: Scenario, step: Step) -> None:
    """Send what lies in an exchange or the adapter to where the fees go."""
    event, who = scenario.rig.neg_risk, scenario.account(step.actor)
    receivers = {each.address: scenario.fees[each.address].receiver for each in scenario.exchanges}
    receivers[event.adapter.address] = event.vault
    contract = (*scenario.exchanges, event.adapter)[step.first % 3]
    collateral = scenario.rig.world.collateral.address
    assert scenario.attempt(who, contract, "sweep", collateral)
    amount = scenario.expected.units[contract.address, COLLATERAL]
    receiver = receivers[contract.address]
    scenario.expected.move(COLLATERAL, contract.address, receiver, amount)
