"""Random scenarios of the whole exchange; `make invariants` runs more, from a seed that it prints."""

from collections import Counter

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.contracts.scenarios.invariants import STEPS, run_counted
from tests.contracts.scenarios.runs import run
from tests.contracts.scenarios.scenario import STEP_BYTES

SCENARIOS = 210
STEPS_MIN = 20_000


@pytest.mark.case("B-13")
def test_in_random_scenarios_the_collateral_covers_all_payouts_and_none_is_left() -> None:
    """There are at least twenty thousand steps, of every kind, and enough of them succeed."""
    done: Counter[str] = Counter()

    # A failing scenario is shrunk by `make invariants` only, because it may take minutes.
    @settings(max_examples=SCENARIOS, phases=[Phase.generate])
    @given(script=st.binary(min_size=STEPS * STEP_BYTES, max_size=STEPS * STEP_BYTES))
    def live(script: bytes) -> None:
        done.update(run_counted(script))

    live()
    assert done["steps"] >= STEPS_MIN
    assert min(done["matched"], done["refused"], done["converted"], done["redeem"]) > 200


def test_an_empty_scenario_leaves_no_collateral() -> None:
    assert not run(b"")
