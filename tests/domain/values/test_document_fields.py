import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.families import FieldProblem, InvalidFields
from foretell.domain.values.document_fields import (
    PROBLEMS_MAX,
    URL_CHARS_MAX,
    Fields,
    is_web_url,
    parse_instant_ms,
)
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, ZERO_BYTES32

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def problems(fields: Fields) -> list[FieldProblem]:
    return list(fields.problems)


def test_all_problems_are_reported_at_once() -> None:
    fields = Fields({"a": 1})
    fields.text("a", 10)
    fields.integer("b")

    with pytest.raises(InvalidFields) as refused:
        fields.check()

    assert refused.value.details["problems"] == [
        {"field": "a", "message": "must be a text that is not empty"},
        {"field": "b", "message": "must be an integer"},
    ]
    assert (
        refused.value.message
        == "a must be a text that is not empty; the details have all 2 problems"
    )


def test_a_document_without_problems_is_accepted() -> None:
    fields = Fields({"a": " text "})

    assert fields.text("a", 10) == "text"
    fields.check()


def test_the_number_of_reported_problems_is_limited() -> None:
    fields = Fields({})
    for index in range(PROBLEMS_MAX + 10):
        fields.integer(f"field-{index}")

    assert len(problems(fields)) == PROBLEMS_MAX


def test_a_problem_of_a_nested_object_is_reported_with_its_path() -> None:
    fields = Fields({"categories": [{}]})
    fields.inside("categories/0", {}).text("slug", 10)

    assert problems(fields) == [
        FieldProblem("categories/0/slug", "must be a text that is not empty")
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "must be a text that is not empty"),
        (5, "must be a text that is not empty"),
        (["x"], "must be a text that is not empty"),
        ("", "must be a text that is not empty"),
        (" \n", "must be a text that is not empty"),
        ("x" * 11, "must have at most 10 characters"),
        ("a\x00b", "must have no control characters"),
        ("a\nb", "must have no control characters"),
        ("a\u202eb", "must have no control characters"),
        ("a\u2066b", "must have no control characters"),
        ("a\x9bb", "must have no control characters"),
    ],
)
def test_an_empty_or_long_text_or_one_with_control_characters_is_refused(
    value: Any, message: str
) -> None:
    fields = Fields({"name": value})

    assert fields.text("name", 10) == ""
    assert problems(fields) == [FieldProblem("name", message)]


def test_a_text_of_several_lines_may_have_line_breaks_only() -> None:
    fields = Fields({"rules": "a\r\n\tb", "other": "a\n\x1b[0m"})

    assert fields.text("rules", 10, may_break=True) == "a\r\n\tb"
    assert fields.text("other", 10, may_break=True) == ""
    assert problems(fields) == [FieldProblem("other", "must have no control characters")]


@pytest.mark.parametrize("value", [True, 1.0, "1", None, [1]])
def test_a_value_that_only_equals_an_integer_is_refused(value: Any) -> None:
    fields = Fields({"chainId": value})

    assert fields.integer("chainId") is None
    assert problems(fields) == [FieldProblem("chainId", "must be an integer")]


def test_a_choice_is_one_of_the_known_words() -> None:
    fields = Fields({"mode": "b", "other": "c", "number": 1})
    choices = {"a": "first", "b": "second"}

    assert fields.choice("mode", choices) == "second"
    assert fields.choice("other", choices) is None
    assert fields.choice("number", choices) is None
    assert [problem.message for problem in problems(fields)] == ["must be one of a, b"] * 2


def test_an_address_is_parsed_in_any_case() -> None:
    fields = Fields({"creator": "0x" + "AB" * 20, "other": "0x12"})

    assert fields.address("creator") == "0x" + "ab" * 20
    assert fields.address("other") == ZERO_ADDRESS
    assert problems(fields) == [FieldProblem("other", "must be an address: 0x and 40 hex digits")]


def test_words_and_bytes_are_parsed_from_hex() -> None:
    fields = Fields(
        {"hash": "0x" + "AB" * 32, "short": "0x12", "bytes": "0x00ff", "long": "0x0001"}
    )

    assert fields.word("hash") == "0x" + "ab" * 32
    assert fields.word("short") == ZERO_BYTES32
    assert fields.raw_bytes("bytes", 2) == b"\x00\xff"
    assert fields.raw_bytes("long", 1) == b""
    assert problems(fields) == [
        FieldProblem("short", "must be 32 bytes: 0x and 64 hex digits"),
        FieldProblem("long", "must be at most 1 bytes: 0x and pairs of hex digits"),
    ]


def test_a_list_has_a_limited_length() -> None:
    fields = Fields({"few": [1], "many": [1, 2, 3], "none": "x"})

    assert fields.entries("few", 2) == [1]
    assert fields.entries("many", 2) is None
    assert fields.entries("none", 2) is None
    assert [problem.message for problem in problems(fields)] == [
        "must have at most 2 entries",
        "must be an array",
    ]


def test_a_field_that_is_null_counts_as_absent() -> None:
    fields = Fields({"null": None, "zero": 0})

    assert not fields.has("null")
    assert not fields.has("absent")
    assert fields.has("zero")
    assert fields.value("zero") == 0


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org",
        "http://example.org:8080/a?b=c#d",
        "https://[2001:db8::1]/",
        "https://xn--bcher-kva.example/",
        "https://bücher.example/",
    ],
)
def test_an_http_url_is_accepted(url: str) -> None:
    fields = Fields({"url": url})

    assert fields.url("url") == url
    assert problems(fields) == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "//example.org",
        "ftp://example.org",
        "javascript:alert(1)",
        "https://",
        "https:///path",
        "https://user@example.org",
        "https://user:word@example.org",
        "https://example.org:port/",
        "https://example.org:99999/",
        "https://[::1/",
        "https://exa mple.org",
        "https://example.org/\n",
        "https:\\\\example.org",
        "https://example.org/" + "a" * URL_CHARS_MAX,
    ],
)
def test_another_url_is_refused(url: str) -> None:
    fields = Fields({"url": url})

    assert not is_web_url(url)
    assert fields.url("url") is None
    assert len(problems(fields)) == 1


@pytest.mark.parametrize("value", [5, ["https://example.org"], {}])
def test_a_url_that_is_no_text_is_refused(value: Any) -> None:
    fields = Fields({"url": value})

    assert fields.url("url") is None
    assert len(problems(fields)) == 1


@pytest.mark.spec(12)
@pytest.mark.parametrize(
    ("text", "moment_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("1970-01-01T00:00:00.0019999Z", 1),
        ("1970-01-01T00:00:00,5Z", 500),
        ("1970-01-01T00:00Z", 0),
        ("1970-01-01T01:30:00+01:30", 0),
        ("1970-01-01T01:30:00+0130", 0),
        ("1969-12-31T19:00:00-05:00", 0),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ("9999-12-31T22:59:59.999-01:00", 253_402_300_799_999),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000),
        ("0001-01-01T01:00:00+01:00", -62_135_596_800_000),
    ],
)
def test_an_instant_is_parsed_to_the_millisecond(text: str, moment_ms: int) -> None:
    assert parse_instant_ms(text) == moment_ms


@pytest.mark.case("F-11")
@pytest.mark.spec(12)
@pytest.mark.parametrize(
    "value",
    [
        None,
        1_800_000_000,
        "",
        "2035-06-01",
        "2035-06-01T12:00:00",
        "2035-06-01 12:00:00Z",
        "2035-06-01T12Z",
        "2035-06-01T12:00:00z",
        "2035-06-01T12:00:00+1",
        "2035-06-01T12:00:00+24:00",
        "2035-02-30T12:00:00Z",
        "2035-13-01T12:00:00Z",
        "2035-06-01T24:00:00Z",
        "2016-12-31T23:59:60Z",
        "20350601T120000Z",
        "2035-W01-1T12:00:00Z",
        "10000-01-01T00:00:00Z",
        "9999-12-31T23:00:00-01:00",
        "9999-12-31T23:59:59-23:59",
        "0001-01-01T00:59:59.999+01:00",
        "0001-01-01T00:00:00+14:00",
        "٢٠٣٥-06-01T12:00:00Z",
        "2035-06-01T12:00:00Z ",
    ],
)
def test_a_malformed_instant_or_one_without_offset_is_refused(value: Any) -> None:
    fields = Fields({"endDateIso": value})

    assert fields.instant_ms("endDateIso") is None
    assert problems(fields) == [
        FieldProblem(
            "endDateIso",
            "must be an ISO 8601 timestamp with its offset from UTC, and in UTC of a year from 1"
            " to 9999",
        )
    ]


@given(st.integers(0, 253_402_300_799_999))
def test_the_text_of_an_instant_is_parsed_to_the_same_instant(moment_ms: int) -> None:
    moment = EPOCH + timedelta(milliseconds=moment_ms)

    assert parse_instant_ms(moment.isoformat(timespec="milliseconds")) == moment_ms


@given(st.text(max_size=40))
def test_no_text_raises_from_a_reader(text: str) -> None:
    fields = Fields({"x": text})
    fields.url("x")
    fields.instant_ms("x")
    fields.text("x", 100)

    assert json.dumps([problem.message for problem in problems(fields)])
