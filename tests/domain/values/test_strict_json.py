import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.http import MalformedBody
from foretell.domain.values.strict_json import (
    DEPTH_MAX,
    DIGITS_MAX,
    VALUES_MAX,
    check_depth,
    parse_json,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_valid_json_is_parsed(value: Any) -> None:
    assert parse_json(json.dumps(value).encode()) == value


@pytest.mark.case("F-04")
@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b'{"a": 1, "a": 1}', "the key 'a' is there twice"),
        (b'{"b": {"a": 1, "\\u0061": 2}}', "the key 'a' is there twice"),
        (b"NaN", "NaN is not JSON"),
        (b"[Infinity]", "Infinity is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b"1e400", "the number 1e400 is too large"),
        (b"-1e400", "the number -1e400 is too large"),
        (b"1" * (DIGITS_MAX + 1), "a number has more than 32 digits"),
        (b"9" * 5000, "a number has more than 32 digits"),
        (b'"\\ud800"', "unpaired surrogate"),
        (b'{"\\udfff": 1}', "unpaired surrogate"),
        (b'["\\ud800x\\udc00"]', "unpaired surrogate"),
        (b'{"a": [{"b": "\\ud83d"}]}', "unpaired surrogate"),
        (b'"\\ud83d\\\\\\ude00"', "unpaired surrogate"),
        (b'"\\\\\\uD83d"', "unpaired surrogate"),
        (b"[1, -" + b"1" * DIGITS_MAX + b"]", "a number has more than 32 digits"),
        (b"[1.5, 1E+0400]", "the number 1E\\+0400 is too large"),
        (b"1" * 400 + b".5", "too large"),
        (b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1), "nested more than 32 deep"),
        (b'{"a":' * 10_000, "nested more than 32 deep"),
        (b'{"a":' * (DEPTH_MAX + 1) + b"1" + b"}" * (DEPTH_MAX + 1), "nested more than 32 deep"),
        (b"[" + b"[{}]," * 50 + b"[" * DEPTH_MAX, "nested more than 32 deep"),
        (b"[" + b"[]," * (VALUES_MAX // 2) + b"1]", "more than 10000 names and values"),
        (b"[" + b"1," * (VALUES_MAX - 1) + b'" , "' + b",1]", "more than 10000 names and values"),
        (b"[" + b'{"a":1},' * (VALUES_MAX // 3) + b"1,1]", "more than 10000 names and values"),
        (b"\xef\xbb\xbf{}", "line 1, column 1 is not JSON"),
        (b"[\xff", "byte 1 is not UTF-8"),
        (b"", "line 1, column 1 is not JSON"),
        (b"{} {}", "line 1, column 4 is not JSON"),
        (b"{'a': 1}", "line 1, column 2 is not JSON"),
        (b'"a\nb"', "line 1, column 3 is not JSON"),
        (b'{"a": 1,}', "line 1, column 9 is not JSON"),
    ],
)
def test_ambiguous_json_is_refused(raw: bytes, why: str) -> None:
    with pytest.raises(MalformedBody, match=why):
        parse_json(raw)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"[" * DEPTH_MAX + b"]" * DEPTH_MAX, None),
        (b'"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["', None),
        (b"[" + b"1," * (VALUES_MAX - 1) + b"1]", None),
        (b'["' + b",:[{" * VALUES_MAX + b'"]', None),
        (b"[" + b"[{}]," * 50 + b"1]", None),
        (b'["\\"[", "\\\\", "{"]', ['"[', "\\", "{"]),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b"1" * DIGITS_MAX, int("1" * DIGITS_MAX)),
        (b'"\\\\ud83d"', r"\ud83d"),
        (b"-" + b"1" * (DIGITS_MAX - 1), int("-" + "1" * (DIGITS_MAX - 1))),
        (b"[1e-400, 1e99, 0.1]", [0.0, 1e99, 0.1]),
        (b'{"__proto__": 1}', {"__proto__": 1}),
    ],
)
def test_unusual_but_unambiguous_json_is_parsed(raw: bytes, value: object) -> None:
    assert parse_json(raw) == (json.loads(raw) if value is None else value)


PIECES = st.sampled_from(
    [
        rb"\ud83d",
        rb"\uDE00",
        rb"\udbff",
        rb"\uDFFF",
        rb"\ud7ff",
        rb"\\",
        rb"\"",
        rb"\n",
        b"u",
        b"ud83d",
    ]
)
NUMBERS = st.from_regex(
    r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,5})?", fullmatch=True
)


@given(st.lists(PIECES, max_size=8))
def test_a_string_is_refused_exactly_if_utf_8_cannot_encode_it(pieces: list[bytes]) -> None:
    raw = b'["' + b"".join(pieces) + b'"]'
    try:
        json.loads(raw)[0].encode()
    except UnicodeEncodeError:
        with pytest.raises(MalformedBody, match="unpaired surrogate"):
            parse_json(raw)
    else:
        assert parse_json(raw) == json.loads(raw)


@given(st.lists(NUMBERS, min_size=1, max_size=4))
def test_a_number_is_refused_exactly_if_it_is_too_long_or_too_large(numbers: list[str]) -> None:
    raw = f"[{','.join(numbers)}]".encode()
    are_long = [len(each) > DIGITS_MAX for each in numbers if each.lstrip("-").isdigit()]
    are_large = [math.isinf(float(each)) for each in numbers if not each.lstrip("-").isdigit()]
    if any(are_long + are_large):
        with pytest.raises(MalformedBody, match=r"digits|too large"):
            parse_json(raw)
    else:
        assert parse_json(raw) == json.loads(raw)


@pytest.mark.case("F-04")
@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(raw: bytes) -> None:
    with contextlib.suppress(MalformedBody):
        json.dumps(parse_json(raw))


@given(JSON, st.integers(0, 2 * DEPTH_MAX))
def test_json_passes_up_to_its_depth(value: Any, more: int) -> None:
    def depth_of(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth_of, inner), default=0) if isinstance(value, dict | list) else 0

    raw = json.dumps(value).encode()
    for wrapped in (b"[" * more + raw + b"]" * more, b'{"":' * more + raw + b"}" * more):
        if depth_of(value) + more <= DEPTH_MAX:
            check_depth(wrapped)
        else:
            with pytest.raises(MalformedBody, match="nested"):
                check_depth(wrapped)
