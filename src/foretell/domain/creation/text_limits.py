"""Limits of the texts in a payload, in characters."""

from typing import Final

TITLE_CHARS_MAX: Final = 300
QUESTION_CHARS_MAX: Final = 500
OUTCOME_CHARS_MAX: Final = 60
LABEL_CHARS_MAX: Final = 80
OPTION_ID_CHARS_MAX: Final = 64
SLUG_TEXT_CHARS_MAX: Final = 300
