import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.families import MalformedAmount
from foretell.domain.exchange.order import Side
from foretell.sdk.amounts import budget_amounts, limit_amounts, parse_base_units

VECTORS = json.loads(
    (Path(__file__).parents[2] / "docs" / "reference" / "amount-vectors.json").read_text()
)


def amounts_of(vector: dict[str, Any]) -> tuple[str, str]:
    """Return the two amounts of a vector's order as texts."""
    if "budget" in vector:
        found = budget_amounts(vector["price"], vector["budget"])
    else:
        found = limit_amounts(Side[vector["side"]], vector["price"], vector["size"])
    return str(found.maker_units), str(found.taker_units)


ACCEPTED = [each for each in (*VECTORS["limit"], *VECTORS["budget"]) if "makerAmount" in each]
REFUSED = [each for each in (*VECTORS["limit"], *VECTORS["budget"]) if "makerAmount" not in each]


@pytest.mark.parametrize("vector", ACCEPTED, ids=str)
def test_the_published_vectors_are_met(vector: dict[str, Any]) -> None:
    assert amounts_of(vector) == (vector["makerAmount"], vector["takerAmount"])


@pytest.mark.parametrize("vector", REFUSED, ids=str)
def test_what_no_exact_amounts_express_is_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(MalformedAmount):
        amounts_of(vector)


@given(side=st.sampled_from(Side), ticks=st.integers(1, 999), units=st.integers(1, 10**12))
def test_amounts_are_exact_or_refused_with_a_size_that_is_not(
    side: Side, ticks: int, units: int
) -> None:
    price, size = f"{ticks / 1000:.3f}", f"{units // 10**6}.{units % 10**6:06d}"
    cost = Fraction(units * ticks, 1000)
    try:
        amounts = limit_amounts(side, price, size)
    except MalformedAmount as refused:
        assert cost.denominator != 1
        lower = refused.message.rpartition(" ")[2]
        assert Fraction(parse_base_units(lower, "size") * ticks, 1000).denominator == 1
    else:
        wanted = (cost, units) if side is Side.BUY else (units, cost)
        assert tuple(amounts) == (int(wanted[0]), int(wanted[1]))


@given(ticks=st.integers(1, 99), units=st.integers(1, 10**12))
def test_a_budget_never_buys_more_than_it_pays_for(ticks: int, units: int) -> None:
    price, budget = f"0.{ticks:02d}", f"{units // 10**6}.{units % 10**6:06d}"
    paid, wanted = budget_amounts(price, budget)
    assert paid == units
    assert wanted * ticks <= units * 100 < (wanted + 1) * ticks
