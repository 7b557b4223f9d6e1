"""Random lives of all kinds of markets side by side."""

from collections import Counter

import pytest
from tests.contracts.scenarios.invariants import (
    MATCHED_SHARE_MIN,
    matched_share,
    run_many_lives,
)
from tests.contracts.scenarios.seeds import fresh_seed

STEPS = 1_000
SEEDS = (20_260_727, 20_260_728)
STEPS_FRESH = 1_000
KINDS = (
    *("matched", "converted", "converted late", "refused before the seal", "seal", "add_option"),
    *("answered", "answered late", "answered by the admin", "disputed", "emergency", "redeem"),
    *("direct flagged", "direct unflagged", "direct proposed", "direct answered by the admin"),
    *("direct fall-back", "direct adapter removed", "held up", "held up late"),
    *("passed on after the hold", "registrar removed", "another admin"),
    *("re-entered exchange", "re-entered adapter", "matched for a deposit wallet"),
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
    done = run_many_lives(STEPS_FRESH, fresh_seed(), is_shrunk=False)
    assert matched_share(done) >= MATCHED_SHARE_MIN
