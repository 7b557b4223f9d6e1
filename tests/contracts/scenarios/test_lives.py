"""Random lives of all kinds of markets side by side."""

from collections import Counter

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.contracts.scenarios.invariants import fresh_seed, run_many_lives
from tests.contracts.scenarios.lives import run_life
from tests.contracts.scenarios.scenario import STEP_BYTES

STEPS = 70
LIVES = 14
STEPS_FRESH = 400
KINDS = (
    *("matched", "converted", "converted late", "refused before the seal", "seal", "add_option"),
    *("answered", "answered late", "disputed", "emergency"),
    *("change_fees", "change_operator", "silence_owner", "pause"),
)


@pytest.mark.case("B-13")
def test_in_random_lives_of_all_kinds_of_markets_everybody_is_paid_what_is_due() -> None:
    done: Counter[str] = Counter()

    # A failing life is shown without shrinking, which would take minutes.
    @settings(max_examples=LIVES, phases=[Phase.generate], deadline=None)
    @given(script=st.binary(min_size=STEPS * STEP_BYTES, max_size=STEPS * STEP_BYTES))
    def live(script: bytes) -> None:
        done.update(run_life(script))

    live()
    assert {kind for kind in KINDS if not done[kind]} == set()


def test_in_lives_of_a_fresh_seed_everybody_is_paid_what_is_due() -> None:
    assert run_many_lives(STEPS_FRESH, fresh_seed(), is_shrunk=False)["match"] > 0
