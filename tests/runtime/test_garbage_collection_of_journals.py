import gc

import pytest

from foretell.journal.memory import unsearched_memory


def fail() -> None:
    with unsearched_memory():
        assert not gc.isenabled()
        raise ValueError("a fault")


def test_memory_is_searched_again_afterwards_whatever_happened() -> None:
    with pytest.raises(ValueError, match="a fault"):
        fail()
    assert gc.isenabled()


def test_what_was_not_searched_before_is_not_searched_afterwards() -> None:
    with unsearched_memory():
        with unsearched_memory():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
