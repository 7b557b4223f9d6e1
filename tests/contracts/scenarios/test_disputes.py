"""Random scenarios of optimistic questions."""

from collections import Counter

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.contracts.scenarios.disputes import STEP_BYTES, run_disputes
from tests.contracts.scenarios.invariants import run_many_disputes
from tests.contracts.scenarios.seeds import fresh_seed

STEPS = 40
SCENARIOS = 60
STEPS_FRESH = 800
KINDS = (
    *("fall-back", "fall-back of a predecessor", "released"),
    *("setArbiter", "setTreasury", "removeAdapter", "acceptAdmin"),
)


@pytest.mark.case("J-04")
def test_in_random_scenarios_every_question_is_answered_and_all_money_withdrawn() -> None:
    done: Counter[str] = Counter()

    # A failing scenario is shown without shrinking, which would take minutes.
    @settings(max_examples=SCENARIOS, phases=[Phase.generate])
    @given(script=st.binary(min_size=STEPS * STEP_BYTES, max_size=STEPS * STEP_BYTES))
    def live(script: bytes) -> None:
        done.update(run_disputes(script))

    live()
    assert min(done["propose"], done["dispute"], done["decide"], done["manual"]) > SCENARIOS // 4
    assert {kind for kind in KINDS if not done[kind]} == set()


def test_in_disputes_of_a_fresh_seed_all_money_is_withdrawn() -> None:
    assert run_many_disputes(STEPS_FRESH, fresh_seed(), is_shrunk=False)["propose"] > 0
