"""Random lives of the whole exchange; `make invariants` lives longer ones, from a seed that it prints."""

from collections import Counter

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.contracts.lives.invariants import STEPS, lived
from tests.contracts.lives.life import STEP_BYTES
from tests.contracts.lives.runs import run

LIVES = 210
STEPS_MIN = 20_000


def test_whatever_everybody_does_the_collateral_covers_what_is_owed_and_comes_out_even() -> None:
    """Twenty thousand steps at least, of every kind, and enough of them that went through."""
    done: Counter[str] = Counter()

    # A life that breaks something is made shorter by `make invariants`, where that may take minutes.
    @settings(max_examples=LIVES, phases=[Phase.generate])
    @given(script=st.binary(min_size=STEPS * STEP_BYTES, max_size=STEPS * STEP_BYTES))
    def live(script: bytes) -> None:
        done.update(lived(script))

    live()
    assert done["steps"] >= STEPS_MIN
    assert min(done["matched"], done["refused"], done["converted"], done["redeem"]) > 200


def test_a_life_of_nothing_comes_out_even() -> None:
    assert not run(b"")
