import json
from decimal import Decimal
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.edge.codec import json_response
from foretell.edge.rendering import (
    amount,
    blob_url,
    decimal_string,
    percentage,
    rounded,
    rounded_ratio,
)


@given(st.integers(-(2**63), 2**63))
def test_an_amount_is_exact(units: int) -> None:
    sent = json_response(amount(units)).content
    assert json.loads(sent, parse_float=Decimal, parse_int=Decimal) * 10**6 == units


@pytest.mark.parametrize(
    ("units", "sent"),
    [(0, b"0"), (1, b"0.000001"), (-5, b"-0.000005"), (12_500_000, b"12.5"), (10**8, b"100")],
)
def test_an_amount_is_a_plain_number(units: int, sent: bytes) -> None:
    assert json_response(amount(units)).content == sent


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (Fraction(1, 3), Decimal("0.333333")),
        (Fraction(-2, 3), Decimal("-0.666667")),
        (Fraction(1, 2 * 10**6), Decimal(0)),
        (Fraction(3, 2 * 10**6), Decimal("0.000002")),
        (Fraction(-1, 10**9), Decimal(0)),
    ],
)
def test_a_fraction_is_rounded_half_to_even(value: Fraction, sent: Decimal) -> None:
    assert rounded(value) == sent


@given(st.integers(-(2**63), 2**63), st.integers(1, 2**63))
def test_a_ratio_is_rounded_as_its_fraction(part: int, whole: int) -> None:
    exact = round(Fraction(part * 10**6, whole))
    assert rounded_ratio(part, whole) == rounded(Fraction(part, whole)) == Decimal(exact) / 10**6


def test_percents_have_four_decimals() -> None:
    assert percentage(2, 3) == Decimal("66.6667")
    assert percentage(-1, 8) == Decimal("-12.5")


def test_a_percentage_of_nothing_is_zero() -> None:
    assert percentage(5, 0) == 0


@pytest.mark.parametrize(
    ("value", "sent"),
    [(Decimal("1E+3"), "1000"), (Decimal("1E-7"), "0.0000001"), (Decimal("0.5"), "0.5")],
)
def test_a_number_in_a_string_has_no_exponent(value: Decimal, sent: str) -> None:
    assert decimal_string(value) == sent


def test_token_ids_stay_strings() -> None:
    token = str(2**255)
    assert msgspec.json.decode(json_response({"asset": token}).content) == {"asset": token}


@pytest.mark.parametrize(
    ("base", "blob_id", "url"),
    [
        ("https://x/worker", "abc", "https://x/worker/blobs/abc"),
        ("https://x/worker/", "abc", "https://x/worker/blobs/abc"),
        ("https://x", "", ""),
    ],
)
def test_an_image_is_fetched_from_the_worker(base: str, blob_id: str, url: str) -> None:
    assert blob_url(base, blob_id) == url
