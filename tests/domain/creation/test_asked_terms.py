import pytest

from foretell.domain.creation.asked_terms import AskedTerms

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
