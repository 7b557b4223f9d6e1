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
