"""Bytes that clients hold."""

from foretell.runtime.client_bytes import ClientBytes


def test_the_bound_of_a_client_comes_before_that_of_all() -> None:
    held = ClientBytes(bytes_max=10, client_bytes_max=6)
    assert held.exceeded_by("ann", 7) == 6
    assert held.exceeded_by("ann", 6) is None
    held.add("ann", 6)
    assert held.exceeded_by("ann", 1) == 6
    assert held.exceeded_by("bob", 5) == 10
    assert held.exceeded_by("bob", 4) is None


def test_a_client_that_holds_nothing_is_forgotten() -> None:
    held = ClientBytes(bytes_max=10, client_bytes_max=6)
    held.add("ann", 6)
    held.add("bob", 1)
    held.add("ann", -6)
    assert (len(held), held.held) == (1, 1)
    assert held.exceeded_by("ann", 6) is None
    held.add("bob", -1)
    held.add("cat", 0)
    assert (len(held), held.held) == (0, 0)
