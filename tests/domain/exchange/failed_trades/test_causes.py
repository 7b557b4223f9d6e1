"""Words on why a trade failed: names of errors as they are, and nothing that a wallet says."""

import pytest

from foretell.domain.exchange.failed_trades.causes import (
    FAILED_CODE,
    FAILED_WORDS,
    NAME_CHARACTERS_MAX,
    failure_text,
)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("OrderFilledOrCancelled", "order_filled_or_cancelled"),
        ("InvalidNonce", "invalid_nonce"),
        ("ERC20InsufficientBalance", "erc20_insufficient_balance"),
        ("Paused", "paused"),
        ("A" * NAME_CHARACTERS_MAX, "a" * NAME_CHARACTERS_MAX),
    ],
)
def test_the_name_of_an_error_is_the_message_and_gives_the_code(name: str, code: str) -> None:
    assert failure_text(name) == (name, code)


@pytest.mark.parametrize(
    "cause",
    [
        "",
        "reverted in block 7",
        "panic 0x11",
        "send your keys to example.com",
        "A" * (NAME_CHARACTERS_MAX + 1),
        "Paused\n",
        "Ärger",
    ],
)
def test_any_other_text_is_not_shown(cause: str) -> None:
    assert failure_text(cause) == (FAILED_WORDS, FAILED_CODE)
