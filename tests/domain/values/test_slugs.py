import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.values.slugs import market_slug, normalize_slug


@pytest.mark.case("F-06")
@pytest.mark.spec(11)
@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("Ünï  Code!!", "uni-code"),
        ("rain-in-bergen", "rain-in-bergen"),
        ("--Rain__in / Bergen--", "rain-in-bergen"),
        ("Łódź, Ærø & Straße", "lodz-aero-strasse"),
        ("\uff26\uff35\uff2c\uff2c \uff57idth", "full-width"),
        ("\u0130stanbul \u0131ss\u0131z", "istanbul-issiz"),
        ("№ 5 ½", "no-5-1-2"),
        ("雨", ""),
        ("", ""),
    ],
)
def test_a_slug_is_lower_case_ascii_words_joined_by_hyphens(text: str, slug: str) -> None:
    assert normalize_slug(text) == slug


@pytest.mark.case("F-06")
@given(st.text(max_size=60))
def test_the_slug_of_a_slug_is_itself(text: str) -> None:
    slug = normalize_slug(text)

    assert normalize_slug(slug) == slug
    assert set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert "--" not in slug
    assert slug == slug.strip("-")


def test_a_market_slug_has_the_option_where_the_event_has_several_markets() -> None:
    assert market_slug("cup") == "cup"
    assert market_slug("cup", "norway") == "cup-norway"
