"""Readings of wallets, shared among clients."""

from foretell.trading.accounts.reading_budget import MINUTE_MS, ReadingBudget, ReadingLimits

LIMITS = ReadingLimits(per_client=3, shared=5, reserve=2, waiting_per_client=2, waiting=3)


def taken(budget: ReadingBudget, client: str, tries: int, at_ms: int = 0) -> int:
    """Return how many of some tries a client was given."""
    return sum(budget.take(client, at_ms) for _ in range(tries))


def test_one_client_takes_its_own_number_in_a_minute() -> None:
    budget = ReadingBudget(LIMITS)
    assert taken(budget, "one", 9) == 3
    assert taken(budget, "other", 9) == 2
    assert taken(budget, "one", 9, MINUTE_MS - 1) == 0
    assert taken(budget, "one", 9, MINUTE_MS) == 3


def test_the_reserve_is_for_clients_that_asked_for_nothing() -> None:
    budget = ReadingBudget(LIMITS)
    assert [taken(budget, client, 9) for client in "abcdef"] == [3, 2, 1, 1, 0, 0]


def test_requests_that_wait_are_bounded_for_each_client_and_for_all() -> None:
    budget = ReadingBudget(LIMITS)
    assert [budget.begin_waiting("one") for _ in range(3)] == [True, True, False]
    assert [budget.begin_waiting("other") for _ in range(2)] == [True, False]
    budget.end_waiting("one")
    assert [budget.begin_waiting("other") for _ in range(2)] == [True, False]


def test_nothing_is_kept_of_clients_of_earlier_minutes() -> None:
    budget = ReadingBudget(LIMITS)
    for number in range(1_000):
        assert budget.take(f"client {number}", number * MINUTE_MS)
        assert budget.begin_waiting(f"client {number}")
        budget.end_waiting(f"client {number}")
    assert budget.size == 1
