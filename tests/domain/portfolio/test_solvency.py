from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.portfolio.positions import Payout
from foretell.domain.portfolio.solvency import (
    DEFICITS_NAMED_MAX,
    BackingUnits,
    ClaimSum,
    OutstandingTokens,
    SolvencyTotal,
)
from foretell.domain.values.hexadecimal import Bytes32

EVENT: Final = Bytes32("0x" + "e" * 64)
HASH: Final = Bytes32("0x" + "b" * 64)
YES, NO, HALF = Payout(1, 0), Payout(0, 1), Payout(1, 1)


def tokens(
    yes: int,
    no: int,
    payout: Payout | None = None,
    *,
    locked: int | None = None,
    event: Bytes32 | None = None,
    burned: int = 0,
) -> OutstandingTokens:
    name = Bytes32(f"0x{yes:032x}{no:032x}")
    return OutstandingTokens(
        name, event, max(yes, no) if locked is None else locked, yes, no, burned, payout
    )


def total_of(claims: ClaimSum, backing: BackingUnits) -> SolvencyTotal:
    return SolvencyTotal(
        1, HASH, 0, claims.conditions, claims.pools(backing), claims.short_conditions, claims.short
    )


@pytest.mark.parametrize(
    ("held", "owed"),
    [
        (tokens(7, 7), 7),
        (tokens(7, 5), 7),
        (tokens(7, 5, YES), 7),
        (tokens(7, 5, NO), 5),
        (tokens(7, 4, HALF), 5),
        (tokens(0, 9, YES), 0),
        (tokens(7, 5, event=EVENT, burned=2), 5),
        (tokens(7, 5, YES, event=EVENT, burned=2), 7),
        (tokens(7, 5, NO, event=EVENT, burned=2), 5),
    ],
)
def test_a_condition_owes_what_its_outcomes_can_still_claim(
    held: OutstandingTokens, owed: int
) -> None:
    assert held.owed_units == owed


@st.composite
def events(draw: st.DrawFn) -> tuple[list[tuple[int, int]], int]:
    """Yield complete sets of each question, and how much of the first No was converted."""
    sets = draw(st.lists(st.integers(1, 50), min_size=2, max_size=5))
    converted = draw(st.integers(0, sets[0]))
    held = [(sets[0], sets[0] - converted)]
    held += [(units + converted, units) for units in sets[1:]]
    return held, sum(sets)


@given(events(), st.data())
def test_an_event_owes_what_its_conversions_left_in_every_ending(
    event: tuple[list[tuple[int, int]], int], data: st.DataObject
) -> None:
    held, collateral = event
    open_claims, ended_claims = ClaimSum(), ClaimSum()
    winner = data.draw(st.integers(0, len(held) - 1))
    for place, (yes, no) in enumerate(held):
        payout = YES if place == winner else NO
        burned = yes - no
        open_claims.add([tokens(yes, no, event=EVENT, burned=burned)])
        ended_claims.add([tokens(yes, no, payout, event=EVENT, burned=burned)])
    backing = BackingUnits(0, collateral, sum(yes for yes, _ in held))
    for claims in (open_claims, ended_claims):
        _, of_events, positions = claims.pools(backing)
        assert (of_events.held_units, of_events.owed_units) == (collateral, collateral)
        assert positions.deficit_units == 0


def test_missing_collateral_is_a_deficit_with_the_name_of_its_pool() -> None:
    claims = ClaimSum()
    claims.add([tokens(10, 10), tokens(4, 4, event=EVENT)])
    total = total_of(claims, BackingUnits(9, 5, 4, 2))
    assert [(each.name, each.units) for each in total.deficits] == [
        ("conditional_tokens", 1),
        ("wrapped_collateral", 1),
    ]
    assert (total.held_units, total.owed_units, total.deficit_units) == (14, 16, 2)
    assert not total.is_solvent


def test_conditions_with_a_deficit_are_counted_and_a_bounded_number_is_named() -> None:
    claims = ClaimSum()
    claims.add([tokens(10 + n, 10, locked=9) for n in range(DEFICITS_NAMED_MAX + 5)])
    total = total_of(claims, BackingUnits(10**9))
    assert total.short_conditions == DEFICITS_NAMED_MAX + 5
    assert len(total.deficits) == DEFICITS_NAMED_MAX
    assert total.deficits[0].units == 1


def test_an_exactly_covered_exchange_is_solvent() -> None:
    claims = ClaimSum()
    claims.add([tokens(10, 10)])
    assert total_of(claims, BackingUnits(10)).is_solvent
