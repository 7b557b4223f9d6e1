from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.node_messages import WORDS_CHARS_MAX, redacted

KEY: Final = "9aa3d95b3bc440fa88ea12eaa4456161"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("execution reverted: GS013", "execution reverted: GS013"),
        ("POST https://u:p@node.example/v3/key failed", "POST (address) failed"),
        ("upstream 'http://10.0.0.1:8545' is down", "upstream '(address)' is down"),
        ('{"url":"wss://node.example/key","is":"down"}', '{"url":"(address)","is":"down"}'),
        (f"project id {KEY} is over its limit", "project id (token) is over its limit"),
        (f"project={KEY}, is over", "project=(token), is over"),
        (f"node.example/v2/{KEY}: timed out", "node.example/v2/(token): timed out"),
        ("key 01234567-89ab-cdef-0123-456789abcdef is unknown", "key (token) is unknown"),
        ("nonce too low\r\n\x1b[31m\0next", "nonce too low   [31m next"),
        ("a\u202eb\u2028c", "a b c"),
        ("x" * 2 * WORDS_CHARS_MAX, "x" * WORDS_CHARS_MAX),
    ],
)
def test_addresses_and_keys_of_a_node_are_hidden(said: str, shown: str) -> None:
    assert redacted(said) == shown


@pytest.mark.parametrize(
    "said",
    [
        "result for condition not received yet",
        "ERC20InsufficientAllowanceOfSpender",
        "reverted with custom error ERC1155InvalidArrayLength()",
        f"insufficient funds of 0x{'ab' * 20}: have {10**21} want {2 * 10**21}",
        f"known transaction: 0x{'0f' * 32}",
        f"custom error 0x{'e4' * 100}",
        "ReentrancyGuard: reentrant call; naïve, 不足",
    ],
)
def test_the_reason_of_a_refusal_stays(said: str) -> None:
    assert redacted(said) == said


@given(st.text())
def test_a_redacted_message_is_short_and_printable_and_stays_as_it_is(said: str) -> None:
    words = redacted(said)
    assert len(words) <= WORDS_CHARS_MAX
    assert words.isprintable()
    assert redacted(words) == words
