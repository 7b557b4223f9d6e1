"""Random lives of optimistic questions."""

from collections import Counter

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.contracts.lives.disputes import STEP_BYTES, dispute_all

STEPS = 40
LIVES = 120


def test_whatever_everybody_does_no_question_is_stuck_and_no_money_either() -> None:
    done: Counter[str] = Counter()

    # As with the lives of the exchange: what breaks one is shown, and not made shorter here.
    @settings(max_examples=LIVES, phases=[Phase.generate])
    @given(script=st.binary(min_size=STEPS * STEP_BYTES, max_size=STEPS * STEP_BYTES))
    def live(script: bytes) -> None:
        done.update(dispute_all(script))

    live()
    assert min(done["propose"], done["dispute"], done["decide"], done["manual"]) > LIVES // 4
