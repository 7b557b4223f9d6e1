import pytest

from foretell.domain.creation.asked_terms import (
    DEFAULT_END_S,
    END_EARLY_MAX_S,
    END_LATE_MAX_S,
    AskedTerms,
)

PLANNED = AskedTerms(5, 500, 7_200)


@pytest.mark.parametrize("reward_units", [5, 6])
def test_a_higher_reward_is_no_other_term(reward_units: int) -> None:
    assert PLANNED._replace(reward_units=reward_units).satisfies(PLANNED)


@pytest.mark.parametrize(
    "terms",
    [
        AskedTerms(4, 500, 7_200),
        AskedTerms(5, 499, 7_200),
        AskedTerms(5, 501, 7_200),
        AskedTerms(5, 500, 60),
        AskedTerms(5, 500, 7_201),
    ],
)
def test_other_terms_do_not_satisfy_a_plan(terms: AskedTerms) -> None:
    assert not terms.satisfies(PLANNED)


def test_terms_are_written_in_base_units_and_seconds() -> None:
    assert PLANNED.wire() == {"reward": "5", "bond": "500", "livenessSeconds": "7200"}
    assert (
        PLANNED.describe() == "a reward of 5 and a bond of 500 base units, and a liveness of 7200 s"
    )


YEAR_S = 365 * 24 * 3_600


@pytest.mark.parametrize(
    ("stated_s", "planned_s", "fits"),
    [
        (YEAR_S, YEAR_S, True),
        (YEAR_S - END_EARLY_MAX_S, YEAR_S, True),
        (YEAR_S - END_EARLY_MAX_S - 1, YEAR_S, False),
        (1, YEAR_S, False),
        (YEAR_S + END_LATE_MAX_S, YEAR_S, True),
        (YEAR_S + END_LATE_MAX_S + 1, YEAR_S, False),
        (0, YEAR_S, True),
        (0, DEFAULT_END_S + END_EARLY_MAX_S + 1, False),
    ],
)
def test_a_stated_end_lies_at_most_an_hour_before_the_planned_one(
    stated_s: int, planned_s: int, *, fits: bool
) -> None:
    assert AskedTerms(0, 0, stated_s).ends_with(AskedTerms(0, 0, planned_s)) is fits
