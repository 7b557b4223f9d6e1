"""Random lives of all kinds of markets side by side."""

from collections import Counter

import pytest
from tests.contracts.scenarios.invariants import (
    MATCHED_SHARE_MIN,
    matched_share,
    run_many_lives,
)
from tests.contracts.scenarios.seeds import fresh_seed

STEPS = 500
SEEDS = (20_260_727, 20_260_728)
STEPS_FRESH = 400
KINDS = (
    *("matched", "converted", "converted late", "refused before the seal", "seal", "add_option"),
    *("answered", "answered late", "answered by the admin", "disputed", "emergency", "redeem"),
    *("change_fees", "change_operator", "silence_owner", "pause", "owed", "sweep"),
)


@pytest.mark.case("B-13")
def test_in_random_lives_of_all_kinds_of_markets_everybody_is_paid_what_is_due() -> None:
    """Markets of both stacks are traded, and enough of the matches go through with each seed."""
    lives = [run_many_lives(STEPS, seed, is_shrunk=False) for seed in SEEDS]
    assert min(map(matched_share, lives)) >= MATCHED_SHARE_MIN
    done = sum(lives, Counter[str]())
    assert {kind for kind in KINDS if not done[kind]} == set()


def test_in_lives_of_a_fresh_seed_everybody_is_paid_what_is_due() -> None:
    assert run_many_lives(STEPS_FRESH, fresh_seed(), is_shrunk=False)["match"] > 0
