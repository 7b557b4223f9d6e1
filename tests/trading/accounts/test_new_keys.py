"""The keys that clients create in a minute."""

import pytest

from foretell.domain.errors.http import TooManyRequests
from foretell.domain.values.rate_windows import RateLimit
from foretell.trading.accounts.new_keys import NewKeyBudget

LIMIT = RateLimit(2, 60_000)


def test_a_client_takes_its_own_number_in_a_minute_and_then_learns_when_to_return() -> None:
    times_ms = [0]
    budget = NewKeyBudget(LIMIT, lambda: times_ms[-1])
    budget.take("one")
    times_ms.append(20_000)
    budget.take("one")
    with pytest.raises(TooManyRequests) as refusal:
        budget.take("one")
    assert refusal.value.details["retry_after_s"] == 40
    budget.take("other")
    times_ms.append(60_000)
    budget.take("one")
    with pytest.raises(TooManyRequests):
        budget.take("one")


@pytest.mark.case("C-15")
def test_clients_are_counted_in_bounded_memory() -> None:
    budget = NewKeyBudget(LIMIT, lambda: 0, clients_max=10)
    for number in range(100):
        budget.take(f"client {number}")
    assert budget.clients == 10
