"""Random scenarios of the whole exchange; `make invariants` runs more, from a seed that it prints."""

import pytest
from tests.contracts.scenarios.invariants import fresh_seed, matched_share, run_many
from tests.contracts.scenarios.runs import run

STEPS_FIXED = 12_000
STEPS_FRESH = 3_000
FIXED_SEED = 20_260_727
MATCHED_SHARE_MIN = 0.3
DONE_MIN = 100
OWED_MIN = 15


@pytest.mark.case("B-13")
def test_in_random_scenarios_the_collateral_covers_all_payouts_and_none_is_left() -> None:
    """There are steps of every kind, and enough of them succeed."""
    done = run_many(STEPS_FIXED, FIXED_SEED, is_shrunk=False)
    assert done["steps"] >= STEPS_FIXED
    kinds = (
        "matched",
        "refused",
        "converted",
        "redeem",
        "sweep",
        "change_fees",
        "emergency",
    )
    assert min(done[kind] for kind in kinds) > DONE_MIN
    assert min(done["owed"], done["claimed"]) > OWED_MIN
    assert done["changed its mind"] > 0
    assert matched_share(done) >= MATCHED_SHARE_MIN
    assert done["ladder of 20"] > 0


def test_in_scenarios_of_a_fresh_seed_the_collateral_covers_all_payouts() -> None:
    """Other scenarios in every run; a failure prints the seed, and FORETELL_TEST_SEED repeats it."""
    assert run_many(STEPS_FRESH, fresh_seed(), is_shrunk=False)["steps"] >= STEPS_FRESH


def test_an_empty_scenario_leaves_no_collateral() -> None:
    assert set(run(b"")) <= {"emergency"}  # how one of its questions ends
