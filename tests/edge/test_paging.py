"""Integers of a query that are read by name."""

import pytest

from foretell.domain.errors.http import MalformedQuery
from foretell.edge.paging import parse_integer


@pytest.mark.parametrize(("text", "value"), [(None, 100), ("", 100), ("1", 1), ("500", 500)])
def test_an_integer_is_read_and_an_absent_one_has_its_default(text: str | None, value: int) -> None:
    assert parse_integer(text, "limit", 100, 1, 500) == value


def test_an_integer_out_of_its_range_is_refused() -> None:
    with pytest.raises(MalformedQuery, match="limit must be an integer from 1 to 500"):
        parse_integer("501", "limit", 100, 1, 500)
