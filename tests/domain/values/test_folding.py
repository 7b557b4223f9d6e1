import string

import pytest

from foretell.domain.values.folding import folded


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Gamma Ünïcode", "gamma unicode"),
        ("STRASSE straße", "strasse strasse"),
        ("ŽLUŤOUČKÝ", "zlutoucky"),
        ("Ёлка", "елка"),
        ("", ""),
    ],
)
def test_accents_and_capitals_are_folded(text: str, plain: str) -> None:
    assert folded(text) == plain


def test_a_plain_text_is_folded_as_its_capitals_alone_are() -> None:
    """So the keys of names, which are plain, are those that were stored when only capitals were folded."""
    assert folded(string.printable) == string.printable.casefold()
