"""The reader of heads must never accept what the framework's parser reads in another way."""

import random
from typing import Any

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.app.http.request_head import END, HEAD_BYTES_MAX, NAMES_KEPT_MAX, HeadReader

LINE = b"POST /order HTTP/1.1\r\n"
USUAL = (
    b"Host: 127.0.0.1:8080",
    b"User-Agent: python-httpx/0.28.1",
    b"Accept: */*",
    b"Connection: keep-alive",
    b"POLY_ADDRESS: 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
    b"POLY-TIMESTAMP: 1764000000",
    b"Content-Type: application/json",
    b"Content-Length: 2",
)
BODY = b"{}"
PIECES = [
    *(
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b":",
        b": ",
        b"\x00",
        b"\x7f",
        b"\xff",
        b",",
        b";",
        b"0",
        b"2",
    ),
    *(
        b"Content-Length: 2\r\n",
        b"content-length: 1\r\n",
        b"Content-Length: +2\r\n",
        b"Content-Length: 2, 2\r\n",
    ),
    *(
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Upgrade: websocket\r\n",
    ),
    *(
        b"Connection: close\r\n",
        b"Connection: upgrade\r\n",
        b"Expect: 100-continue\r\n",
        b" folded\r\n",
    ),
    *(
        b"X: \r\n",
        b"X:1\r\n",
        b"X:  1\r\n",
        b"X: 1 \r\n",
        b"X\r\n",
        b": 1\r\n",
        b"X : 1\r\n",
        b"\xc3: 1\r\n",
    ),
]


class Parsed:
    """A request as the framework's parser reads it."""

    def __init__(self) -> None:
        self.headers: list[tuple[str, str]] = []
        self.body = b""
        self.messages = self.heads = 0

    def on_message_begin(self) -> None:
        self.messages += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower().decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self.heads += 1

    def on_body(self, body: bytes) -> None:
        self.body += body


def parsed(data: bytes) -> tuple[Parsed, Any]:
    seen = Parsed()
    parser = httptools.HttpRequestParser(seen)
    parser.feed_data(data)
    return seen, parser


def check_agrees(lines: bytes) -> bool:
    """Return whether the reader accepts the lines; then the parser must read the same."""
    head = HeadReader().read(lines)
    if head is None:
        return False
    body = b"x" * head.body_bytes
    seen, parser = parsed(LINE + lines + END + body)
    assert (seen.messages, seen.heads) == (1, 1)
    assert seen.headers == list(head.headers.items())
    assert seen.body == body
    assert parser.should_keep_alive()
    assert not parser.should_upgrade()
    assert parser.get_http_version() == "1.1"
    return True


def test_a_usual_head_is_accepted() -> None:
    lines = b"\r\n".join(USUAL)
    assert check_agrees(lines)
    head = HeadReader().read(lines)
    assert head is not None
    assert head.body_bytes == len(BODY)
    assert head.headers["poly-timestamp"] == "1764000000"
    assert "poly_address" in head.headers
    assert head.headers.get("x-request-id") is None


@pytest.mark.parametrize("piece", PIECES)
def test_a_strange_piece_anywhere_is_left_to_the_parser_or_read_alike(piece: bytes) -> None:
    lines = b"\r\n".join(USUAL)
    accepted = 0
    for at in range(len(lines) + 1):
        accepted += check_agrees(lines[:at] + piece + lines[at:])
    assert accepted < len(lines)


@given(st.randoms(use_true_random=False), st.integers(1, 6))
def test_damaged_heads_are_left_to_the_parser_or_read_alike(
    chosen: random.Random, count: int
) -> None:
    lines = b"\r\n".join(USUAL)
    for _ in range(count):
        at, end = sorted(chosen.choices(range(len(lines) + 1), k=2))
        end = min(end, at + chosen.randrange(12))
        lines = lines[:at] + chosen.choice([*PIECES, b"", b""]) + lines[end:]
    check_agrees(lines)


@given(
    st.lists(
        st.tuples(st.binary(min_size=1, max_size=12), st.binary(max_size=12)),
        min_size=1,
        max_size=5,
    )
)
def test_random_headers_are_left_to_the_parser_or_read_alike(
    pairs: list[tuple[bytes, bytes]],
) -> None:
    check_agrees(b"\r\n".join([USUAL[0], *(name + b": " + value for name, value in pairs)]))


@pytest.mark.parametrize(
    "line",
    [
        *(
            b"Transfer-Encoding: chunked",
            b"Upgrade: websocket",
            b"Expect: 100-continue",
            b"Trailer: x",
        ),
        *(
            b"Connection: close",
            b"Connection: upgrade",
            b"Origin: https://app.example",
            b"Content-Length: 3",
            b"host: twice",
        ),
        *(b"X: " + b"y" * HEAD_BYTES_MAX, b"Name with blanks: 1", b"X:1", b"X: 1 ", b"X: \t1"),
    ],
)
def test_an_unusual_header_is_left_to_the_parser(line: bytes) -> None:
    assert HeadReader().read(b"\r\n".join([*USUAL, line])) is None


@pytest.mark.parametrize("length", [b"-1", b"1.0", b"0x2", b"123456", b"\xb2", b""])
def test_a_strange_length_is_left_to_the_parser(length: bytes) -> None:
    assert HeadReader().read(b"Host: x\r\nContent-Length: " + length) is None


def test_attack_l6_a_head_without_a_host_is_left_to_the_parser() -> None:
    assert HeadReader().read(b"\r\n".join(USUAL[1:])) is None


def test_the_shapes_of_heads_that_are_kept_have_a_bound() -> None:
    reader = HeadReader(shapes_kept_max=3)
    for number in range(10):
        assert reader.read(b"Host: x\r\nX-%d: y" % number) is not None
        assert len(reader._shape_by_names) <= 3


@pytest.mark.parametrize(("names", "kept"), [(NAMES_KEPT_MAX, 1), (NAMES_KEPT_MAX + 1, 0)])
def test_the_shape_of_a_head_with_many_headers_is_not_kept(names: int, kept: int) -> None:
    """A finding: heads of 128 headers, each with other names, took memory that was never given back."""
    reader = HeadReader()
    others = range(names - 1)
    lines = [b"X-%d: %d" % (number, number) for number in others]
    head = reader.read(b"\r\n".join([b"Host: x", *lines]))
    assert head is not None
    assert dict(head.headers) == {"host": "x"} | {f"x-{each}": str(each) for each in others}
    assert len(reader._shape_by_names) == kept
