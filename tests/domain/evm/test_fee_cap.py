import pytest

from foretell.domain.evm.fee_cap import KEPT_MS, FeeBound, is_beyond_fee_cap

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("words", "is_beyond"),
    [
        ("tx fee (1.03 ether) exceeds the configured cap (1.00 ether)", True),
        ("tx fee (1030 wei) exceeds the configured cap (1000 wei)", True),
        ("Transaction fee cap exceeded", True),
        ("exceeds block gas limit", False),
        ("max priority fee per gas higher than max fee per gas", False),
        ("reverted in block 7", False),
        (None, False),
    ],
)
def test_a_refusal_for_the_fee_is_known_by_its_words(words: str | None, *, is_beyond: bool) -> None:
    assert is_beyond_fee_cap(words) is is_beyond


def test_a_bound_is_half_of_the_lowest_fee_refused_and_ends_after_an_hour_without_another() -> None:
    bound = FeeBound()
    assert bound.wei(NOW_MS) is None
    bound.lower(1_000, NOW_MS)
    bound.lower(2_000, NOW_MS)
    assert bound.wei(NOW_MS) == 500
    bound.lower(600, NOW_MS + 1)
    assert bound.wei(NOW_MS + KEPT_MS) == 300
    assert bound.wei(NOW_MS + KEPT_MS + 1) is None
    bound.lower(2_000, NOW_MS + KEPT_MS + 1)
    assert bound.wei(NOW_MS + KEPT_MS + 1) == 1_000
