import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.values.rate_leases import (
    NO_LEASE,
    Demand,
    RateLease,
    fair_share,
    lease_of,
    part_of,
    wanted_of,
)

amounts = st.integers(0, 3_000)


@pytest.mark.parametrize(
    ("requests", "wanted", "shares"),
    [
        (100, [30, 40], [30, 40]),
        (100, [200, 200], [50, 50]),
        (100, [10, 200], [10, 90]),
        (100, [10, 30, 200], [10, 30, 60]),
        (100, [0, 100, 100], [0, 50, 50]),
        (100, [100], [100]),
    ],
)
def test_shares_are_fair(requests: int, wanted: list[int], shares: list[int]) -> None:
    assert [
        fair_share(requests, each, [*wanted[:at], *wanted[at + 1 :]])
        for at, each in enumerate(wanted)
    ] == shares


@given(requests=st.integers(1, 3_000), wanted=st.lists(amounts, min_size=1, max_size=6))
def test_fair_shares_never_exceed_the_limit_nor_what_is_wanted(
    requests: int, wanted: list[int]
) -> None:
    shares = [
        fair_share(requests, each, [*wanted[:at], *wanted[at + 1 :]])
        for at, each in enumerate(wanted)
    ]
    assert sum(shares) <= requests
    assert all(share <= each for share, each in zip(shares, wanted, strict=True))
    assert sum(shares) >= min(requests, sum(wanted)) - len(wanted)


@given(
    requests=st.integers(1, 500),
    steps=st.lists(st.tuples(st.integers(0, 3), amounts, st.integers(0, 600)), max_size=60),
)
def test_the_leases_of_all_processes_never_exceed_the_limit(
    requests: int, steps: list[tuple[int, int, int]]
) -> None:
    """Whatever each process has used and wants, in any order."""
    demands = [Demand(0, 0)] * 4
    for process, wanted, used in steps:
        mine = Demand(demands[process].leased, wanted)
        others = [*demands[:process], *demands[process + 1 :]]
        lease = lease_of(requests, used, mine, others)
        assert lease.held >= lease.admitted
        assert lease.held >= min(used, mine.leased)
        demands[process] = Demand(lease.held, wanted)
        assert sum(demand.leased for demand in demands) <= requests


def test_a_process_that_is_idle_wants_nothing_and_one_at_work_has_headroom() -> None:
    assert part_of(50) == 1
    assert part_of(2_400) == 37
    assert wanted_of(2_400, used=10, waiting=0) == 0
    assert wanted_of(2_400, used=100, waiting=0) == 137
    assert wanted_of(2_400, used=100, waiting=20) == 157
    assert wanted_of(2_400, used=2_390, waiting=900) == 2_400
    assert lease_of(2_400, 0, Demand(0, 0), []) == NO_LEASE == RateLease(0, 0)
