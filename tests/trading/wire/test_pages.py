import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.order import MalformedBatch
from foretell.trading.wire.pages import END, OFFSET_MAX, page, parse_cursor


@pytest.mark.parametrize(
    ("text", "offset"), [(None, 0), ("", 0), ("MA==", 0), ("MTAw", 100), ("LTE=", OFFSET_MAX)]
)
def test_a_cursor_is_an_encoded_offset(text: str | None, offset: int) -> None:
    assert parse_cursor(text) == offset


@pytest.mark.case("G-04")
@pytest.mark.parametrize(
    "text",
    ["x", "MA", "MA=", "MA==\n", "LTI=", "/w==", "MS41", base64.b64encode(b"9" * 11).decode()],
)
def test_an_unknown_cursor_is_refused(text: str) -> None:
    with pytest.raises(MalformedBatch):
        parse_cursor(text)


@given(total=st.integers(0, 60), limit=st.integers(1, 20))
def test_following_cursors_shows_everything_once_and_ends(total: int, limit: int) -> None:
    everything = list(range(total))
    seen: list[int] = []
    cursor, pages = "", 0
    while cursor != END:
        offset = parse_cursor(cursor)
        part = page(everything[offset : offset + limit + 1], offset, limit)
        seen += part.data
        cursor, pages = part.next_cursor, pages + 1
        assert (part.limit, part.count) == (limit, len(part.data))
    assert seen == everything
    assert pages == max(-(-total // limit), 1)
