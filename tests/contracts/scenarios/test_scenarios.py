"""Random scenarios of the whole exchange; `make invariants` runs more, from a seed that it prints."""

from collections import Counter

import pytest
from tests.contracts.scenarios.invariants import (
    MATCHED_SHARE_MIN,
    matched_share,
    run_many,
)
from tests.contracts.scenarios.runs import run
from tests.contracts.scenarios.seeds import fresh_seed

STEPS_FIXED = 3_000
FIXED_SEEDS = (20_260_727, 20_260_728)
STEPS_FRESH = 3_000
DONE_MIN = 50
OWED_MIN = 15
KINDS = (
    *("ladder of 20", "changed its mind", "signer changed its mind"),
    *("re-entered exchange", "re-entered adapter"),
    *("matched for a deposit wallet", "matched for a wavering signer", "matched by approval"),
    *("refused for a forgery", "refused by approval", "approved", "approval taken back"),
    *("registrar removed", "another admin"),
    *("held up", "unflagged", "passed on", "passed on after the hold"),
)


@pytest.mark.case("B-13")
def test_in_random_scenarios_the_collateral_covers_all_payouts_and_none_is_left() -> None:
    """There are steps of every kind, and enough of the matches go through with each seed."""
    runs = [run_many(STEPS_FIXED, seed, is_shrunk=False) for seed in FIXED_SEEDS]
    assert min(map(matched_share, runs)) >= MATCHED_SHARE_MIN
    done = sum(runs, Counter[str]())
    assert done["steps"] >= STEPS_FIXED * len(FIXED_SEEDS)
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
    assert {kind for kind in KINDS if not done[kind]} == set()


def test_in_scenarios_of_a_fresh_seed_the_collateral_covers_all_payouts() -> None:
    """Other scenarios in every run; the run prints its seed, and FORETELL_TEST_SEED repeats it."""
    done = run_many(STEPS_FRESH, fresh_seed(), is_shrunk=False)
    assert done["steps"] >= STEPS_FRESH
    assert matched_share(done) >= MATCHED_SHARE_MIN


def test_an_empty_scenario_leaves_no_collateral() -> None:
    done = run(b"")
    assert sum(done[kind] for kind in ("matched", "split", "converted", "redeem")) == 0
