"""Complete lives of all kinds of markets side by side, compared with expected balances."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from tests.contracts.scenarios.actions import (
    cancel,
    claim,
    claim_all,
    convert,
    give,
    merge,
    pause,
    raise_nonce,
    redeem,
    redeem_all,
    split,
)
from tests.contracts.scenarios.direct import (
    answer_direct,
    change_direct_adapter,
    end_direct,
    flag_direct,
)
from tests.contracts.scenarios.expected import COLLATERAL
from tests.contracts.scenarios.lives import (
    Life,
    add_option,
    answer_asked,
    answer_late,
    convert_late,
    seal,
)
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
from tests.contracts.scenarios.reports import answer_question, flag_question, pass_on
from tests.contracts.scenarios.runs import finish
from tests.contracts.scenarios.scenario import Step, steps_of
from tests.contracts.scenarios.trading import ladder, match

ROUNDS_MAX: Final = 6
ACTIONS: Final[tuple[Callable[[Life, Step], None], ...]] = (
    *(split, split, merge, give),
    *(place, place, match, match, match, match, ladder, ladder),
    *(cancel, raise_nonce, end_before, approve, claim, convert, sweep, redeem),
    *(add_option, add_option, seal, seal, convert_late, convert_late, convert_late),
    *(answer_asked, answer_late, answer_question, flag_question, pass_on),
    *(flag_direct, answer_direct, change_direct_adapter),
    *(change_fees, change_operator, change_registrar, change_admin, silence_owner, pause, wait),
)


def run_life(script: bytes) -> Counter[str]:
    """Run a script, answer and redeem everything, compare all balances, and count the actions."""
    life = Life()
    with life.rig.evm.rolled_back():
        for step in steps_of(script):
            action = ACTIONS[step.action % len(ACTIONS)]
            life.expected.touched.clear()
            action(life, step)
            life.done[action.__name__] += 1
            life.compare(life.expected.touched)
            life.check_covered()
            life.check_locked()
        end_life(life)
        finish(life)
    return life.done


def end_life(life: Life) -> None:
    """Answer the questions of both stacks beside the sealed event, and have everything of them redeemed."""
    end_direct(life)
    for number in range(ROUNDS_MAX * (1 + len(life.late_pairs))):
        answer_asked(life, Step(0, 0, 0, 0, 1, 0))
        answer_late(life, Step(0, 0, number, 0, 1, 0))
    assert life.neither_open
    claim_all(life)
    for who in (*life.accounts, *life.paid):
        redeem_all(life, who)
    event, count = life.rig.neg_risk, len(life.late_pairs)
    if True not in life.late_answers.values() and life.late_converted:
        arguments = life.life.late_market, count
        event.adapter.send("releaseUnclaimed", *arguments, sender=life.accounts[0])
        lock, vault = event.wrapped.address, event.vault
        life.expected.move(COLLATERAL, lock, vault, life.late_converted)
