from itertools import islice

import pytest

from foretell.runtime.backoff import JITTER, pauses_s


@pytest.mark.parametrize(("first_s", "most_s"), [(0.5, 4.0), (1.0, 1.0), (0.25, 30.0)])
def test_pauses_double_up_to_the_most_and_vary_by_the_jitter(first_s: float, most_s: float) -> None:
    wanted = [min(first_s * 2**attempt, most_s) for attempt in range(12)]
    pauses = list(islice(pauses_s(first_s, most_s), 12))
    within = [
        whole * (1 - JITTER) <= pause <= whole for whole, pause in zip(wanted, pauses, strict=True)
    ]
    assert all(within)
    assert len(set(pauses)) == 12
