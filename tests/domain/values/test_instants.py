from datetime import datetime

import pytest

from foretell.domain.values.instants import iso_time, unix_ms


@pytest.mark.parametrize(
    ("at_ms", "sent"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_800_000_000_000, "2027-01-15T08:00:00Z"),
        (1_800_000_000_120, "2027-01-15T08:00:00.120Z"),
    ],
)
def test_a_moment_is_iso_8601_in_utc(at_ms: int, sent: str) -> None:
    assert iso_time(at_ms) == sent
    assert datetime.fromisoformat(sent).timestamp() * 1000 == at_ms
    assert unix_ms(datetime.fromisoformat(sent)) == at_ms
