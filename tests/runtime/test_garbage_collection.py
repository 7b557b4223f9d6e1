import gc
from collections.abc import Iterator

import pytest

from foretell.runtime.garbage_collection import (
    YOUNG_OBJECTS_MAX,
    collection_paused,
    settle_memory,
)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Collect garbage afterwards as before."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_what_is_there_is_searched_no_more() -> None:
    settle_memory()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == YOUNG_OBJECTS_MAX
    assert gc.isenabled()


def test_what_comes_later_is_still_freed() -> None:
    settle_memory()
    circle: list[object] = []
    circle.append(circle)
    del circle
    assert gc.collect() >= 1


def fail() -> None:
    with collection_paused():
        assert not gc.isenabled()
        raise ValueError("a fault")


def test_memory_is_searched_again_afterwards_whatever_happened() -> None:
    with pytest.raises(ValueError, match="a fault"):
        fail()
    assert gc.isenabled()


def test_what_was_not_searched_before_is_not_searched_afterwards() -> None:
    with collection_paused():
        with collection_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
