"""A slice's totals, on both sides of it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import an_address

from foretell.domain.exchange.allocations import Allocation, Allocations, total_of

ALICE = an_address("alice")
TOTALS = st.integers(0, 2**80)


@given(given_units=TOTALS, returned_units=TOTALS, settled_units=st.integers(-(2**80), 2**80))
def test_a_slice_is_what_was_given_and_settled_less_what_was_returned(
    given_units: int, returned_units: int, settled_units: int
) -> None:
    held = Allocation(given_units, returned_units, settled_units)
    assert held.units == given_units + settled_units - returned_units


@given(given_units=TOTALS, returned_units=TOTALS, settled_units=st.integers(-(2**80), 2**80))
def test_a_slice_comes_back_from_a_snapshot_whatever_its_width(
    given_units: int, returned_units: int, settled_units: int
) -> None:
    held = Allocation(given_units, returned_units, settled_units)
    kept = msgspec.msgpack.decode(msgspec.msgpack.encode(held.totals()))
    assert Allocation.of_totals(*kept) == held


@given(st.integers(-(2**80), 2**80))
def test_a_total_of_any_width_travels_as_a_decimal_string(units: int) -> None:
    assert int(total_of(units)) == units


@pytest.mark.parametrize(("name", "is_joined"), [("", False), ("north", True)])
def test_a_shard_has_joined_once_it_has_a_name(name: str, *, is_joined: bool) -> None:
    assert Allocations(name).is_joined is is_joined


def test_looking_at_a_slice_does_not_open_it() -> None:
    allocations = Allocations("north")
    allocations.look_up(ALICE).given_units = 5
    assert allocations.allocation_by_wallet == {}
    assert allocations.look_up(ALICE).units == 0


def test_a_slice_stays_the_same_once_opened() -> None:
    allocations = Allocations("north")
    assert (
        allocations.allocation_of(ALICE)
        is allocations.allocation_of(ALICE)
        is allocations.look_up(ALICE)
    )
