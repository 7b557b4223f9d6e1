"""Complete runs of scenarios on the real contracts, compared with expected balances.

An allowed step must succeed, and a successful step must change exactly the expected balances. After
every step the locked collateral covers all payouts; at the end none is left.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from tests.contracts.neg_risk.rig import BURN
from tests.contracts.scenarios.actions import (
    answer_market,
    cancel,
    claim,
    claim_all,
    convert,
    give,
    merge,
    misdirect,
    pause,
    raise_nonce,
    redeem,
    redeem_all,
    split,
)
from tests.contracts.scenarios.expected import COLLATERAL, QUESTIONS
from tests.contracts.scenarios.orders import approve, place
from tests.contracts.scenarios.powers import (
    change_admin,
    change_fees,
    change_operator,
    change_registrar,
    end_before,
    silence_owner,
    sweep,
    wait,
)
from tests.contracts.scenarios.reports import answer_all, answer_question, flag_question, pass_on
from tests.contracts.scenarios.scenario import Scenario, Step, steps_of
from tests.contracts.scenarios.trading import ladder, match

ACTIONS: Final[tuple[Callable[[Scenario, Step], None], ...]] = (
    *(split, split, split, merge, give, misdirect),
    *(place, place, place, place, match, match, match, match, match, match),
    *(ladder, ladder, ladder, cancel, raise_nonce, end_before, silence_owner, approve, approve),
    *(claim, claim, pause, convert, convert, change_fees, change_operator, change_registrar),
    *(change_admin, wait, sweep, answer_market, answer_question, flag_question, pass_on, redeem),
)


def run(script: bytes) -> Counter[str]:
    """Run a script, redeem everything, compare all balances, and count the actions."""
    scenario = Scenario()
    with scenario.rig.evm.rolled_back():
        for step in steps_of(script):
            take(scenario, step)
        finish(scenario)
    return scenario.done


def take(scenario: Scenario, step: Step) -> None:
    action = ACTIONS[step.action % len(ACTIONS)]
    scenario.expected.touched.clear()
    action(scenario, step)
    scenario.done[action.__name__] += 1
    scenario.compare(scenario.expected.touched)
    scenario.check_covered()
    scenario.check_locked()


def finish(scenario: Scenario) -> None:
    """Answer and redeem everything, and check that no locked collateral is left."""
    scenario.expected.touched.clear()
    answer_market(scenario, Step(0, 0, 0, 0, 0, 0))
    answer_all(scenario)
    claim_all(scenario)
    for who in (*scenario.accounts, *scenario.paid):
        redeem_all(scenario, who)
    event, plain = scenario.rig.neg_risk, scenario.plain_pairs
    if True not in scenario.answered.values() and scenario.expected.converted:
        event.adapter.send(
            "releaseUnclaimed", scenario.rig.event_market, QUESTIONS, sender=scenario.accounts[0]
        )
        scenario.expected.move(
            COLLATERAL, event.wrapped.address, event.vault, scenario.expected.converted
        )
    scenario.compare({key for key, _ in scenario.expected.units.items() if key[0] != BURN})
    scenario.check_locked()
    scenario.count_attempts()
    assert scenario.expected.units[event.wrapped.address, COLLATERAL] == scenario.event_base
    left = scenario.expected.units[plain[0].lock, COLLATERAL] - scenario.market_base
    # Halves are rounded down, once for each holder and side.
    assert 0 <= left <= 2 * len(plain) * (len(scenario.accounts) + len(scenario.paid))
