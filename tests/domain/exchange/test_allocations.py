"""The totals of an allocation."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import an_address

from foretell.domain.exchange.allocations import Allocation, Allocations, AllocationTotals, total_of

ALICE = an_address("alice")
TOTALS = st.integers(0, 2**80)


@given(given_units=TOTALS, returned_units=TOTALS, settled_units=st.integers(-(2**80), 2**80))
def test_an_allocation_is_given_plus_settled_minus_returned_units(
    given_units: int, returned_units: int, settled_units: int
) -> None:
    held = Allocation(given_units, returned_units, settled_units)
    assert held.units == given_units + settled_units - returned_units


@given(given_units=TOTALS, returned_units=TOTALS, settled_units=st.integers(-(2**80), 2**80))
def test_an_allocation_of_any_width_is_restored_from_a_snapshot(
    given_units: int, returned_units: int, settled_units: int
) -> None:
    held = Allocation(given_units, returned_units, settled_units)
    kept = msgspec.msgpack.decode(msgspec.msgpack.encode(held.totals()))
    assert Allocation.of_totals(*kept) == held


def test_the_totals_of_a_message_give_the_allocation() -> None:
    totals = AllocationTotals(ALICE, total_of(7), total_of(2), total_of(-1))
    assert totals.allocation() == Allocation(7, 2, -1)


@given(st.integers(-(2**80), 2**80))
def test_a_total_of_any_width_is_a_decimal_string_in_messages(units: int) -> None:
    assert int(total_of(units)) == units


@pytest.mark.parametrize(("name", "is_joined"), [("", False), ("north", True)])
def test_a_shard_has_joined_once_it_has_a_name(name: str, *, is_joined: bool) -> None:
    assert Allocations(name).is_joined is is_joined


def test_a_look_up_does_not_open_an_allocation() -> None:
    allocations = Allocations("north")
    allocations.look_up(ALICE).given_units = 5
    assert allocations.allocation_by_wallet == {}
    assert allocations.look_up(ALICE).units == 0


def test_an_allocation_stays_the_same_object_once_opened() -> None:
    allocations = Allocations("north")
    assert (
        allocations.allocation_of(ALICE)
        is allocations.allocation_of(ALICE)
        is allocations.look_up(ALICE)
    )
