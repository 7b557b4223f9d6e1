"""The options of a payload of several markets."""

from dataclasses import dataclass
from typing import Any, Final

from foretell.domain.creation.slug_fields import checked_slug, read_slug
from foretell.domain.creation.text_limits import (
    OPTION_ID_CHARS_MAX,
    OUTCOME_CHARS_MAX,
    QUESTION_CHARS_MAX,
)
from foretell.domain.values.document_fields import Fields

OPTIONS_MIN: Final = 2
OPTIONS_MAX: Final = 60
"""With this many options, one upload can contain an image of each and of the event."""


@dataclass(frozen=True, slots=True)
class OptionDraft:
    """One option; `slug` is its own part of its market's slug."""

    key: str
    slug: str
    question: str
    title: str
    short_title: str


def read_options(fields: Fields, event_title: str, options_min: int) -> tuple[OptionDraft, ...]:
    """Return the options, all with different keys, slugs and questions."""
    entries = fields.entries("options", OPTIONS_MAX)
    if entries is None:
        return ()
    if len(entries) < options_min:
        fields.refuse("options", f"must have at least {options_min} entries")
    options = tuple(
        _option(fields, index, entry, event_title) for index, entry in enumerate(entries)
    )
    for name, texts in (
        ("id", [option.key for option in options]),
        ("slug", [option.slug for option in options]),
        ("question", [option.question for option in options]),
    ):
        for index, text in enumerate(texts):
            first = texts.index(text)
            if first < index:
                fields.refuse(f"options/{index}/{name}", f"must differ from that of {first}")
    return options


def _option(fields: Fields, index: int, entry: Any, event_title: str) -> OptionDraft:
    where = f"options/{index}"
    if not isinstance(entry, dict):
        fields.refuse(where, "must be an object")
    option = fields.inside(where, entry if isinstance(entry, dict) else {})
    title = option.text("title", OUTCOME_CHARS_MAX)
    has_id, has_slug = option.has("id"), option.has("slug")
    return OptionDraft(
        key=option.text("id", OPTION_ID_CHARS_MAX) if has_id else f"option-{index + 1}",
        slug=read_slug(option, "slug") if has_slug else checked_slug(option, "title", title),
        question=question_of(option, f"{event_title}: {title}"),
        title=title,
        short_title=option.text("shortName", OUTCOME_CHARS_MAX),
    )


def question_of(fields: Fields, derived: str) -> str:
    """Return the question of a market; by default it is derived from the titles."""
    value = fields.value("question")
    is_absent = value is None or (isinstance(value, str) and not value.strip())
    return derived if is_absent else fields.text("question", QUESTION_CHARS_MAX)
