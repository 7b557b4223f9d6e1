"""Actions of admins, of makers who end many orders, and of anybody who sweeps."""

from tests.contracts.scenarios.expected import COLLATERAL
from tests.contracts.scenarios.scenario import Scenario, Step
from tests.contracts.scenarios.trading import address_key

DAY_S = 24 * 3600
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
    exchange, world = scenario.traded(step.first).exchange, scenario.rig.world
    fees, rate_bps = scenario.fees[exchange.address], RATES_BPS[step.second % len(RATES_BPS)]
    receiver = scenario.rig.fee_receivers[step.third % len(scenario.rig.fee_receivers)]
    assert not scenario.attempt(scenario.account(step.actor), exchange, "setFeeReceiver", receiver)
    assert scenario.attempt(world.admin, exchange, "setMaxFeeRateBps", rate_bps)
    assert scenario.attempt(world.admin, exchange, "setFeeReceiver", receiver)
    fees.announce(rate_bps, scenario.rig.evm.now())
    fees.receiver = receiver
    assert exchange.call("maxFeeRateBps") == fees.rate_at(scenario.rig.evm.now())


def change_operator(scenario: Scenario, step: Step) -> None:
    """Remove the operator of an exchange at some steps, and appoint it again."""
    exchange, world = scenario.traded(step.first).exchange, scenario.rig.world
    is_removed = step.second % 16 == 1
    name = "removeOperator" if is_removed else "addOperator"
    assert not scenario.attempt(scenario.account(step.actor), exchange, name, world.operator)
    assert scenario.attempt(world.admin, exchange, name, world.operator)
    missing = scenario.without_operator
    (missing.add if is_removed else missing.discard)(exchange.address)


def wait(scenario: Scenario, step: Step) -> None:
    scenario.rig.evm.rpc("evm_increaseTime", step.second % 3 * DAY_S + 1)


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
