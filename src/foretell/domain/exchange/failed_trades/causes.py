"""Words for clients on why a trade failed: the name of the contract's error, and a code.

A cause can be the text of a revert, which a wallet chooses. Only what is a name is shown.
"""

import re
from typing import Final, NamedTuple

FAILED_WORDS: Final = "the trade could not be settled on the chain"
FAILED_CODE: Final = "settlement_failed"
"""The code of a failure without a contract's error, such as a revert without data."""
NAME_CHARACTERS_MAX: Final = 64

_NAME: Final = re.compile(rf"[A-Z][A-Za-z0-9]{{0,{NAME_CHARACTERS_MAX - 1}}}\Z", re.ASCII)
_WORD_BEGIN: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class FailureText(NamedTuple):
    """The words of a failure, and their code, which programs can compare."""

    message: str
    code: str


def failure_text(cause: str) -> FailureText:
    """Return the words for a cause: `InsufficientAllowance` has the code `insufficient_allowance`."""
    if not _NAME.match(cause):
        return FailureText(FAILED_WORDS, FAILED_CODE)
    return FailureText(cause, _WORD_BEGIN.sub("_", cause).lower())
