import gc
from collections.abc import Iterator

import pytest

from foretell.runtime.garbage_collection import (
    YOUNG_OBJECTS_MAX,
    garbage_collection_paused,
    settle_memory,
)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Restore the settings of garbage collection afterwards."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_existing_objects_are_excluded_from_collection() -> None:
    settle_memory()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == YOUNG_OBJECTS_MAX
    assert gc.isenabled()


def test_later_objects_are_still_freed() -> None:
    settle_memory()
    circle: list[object] = []
    circle.append(circle)
    del circle
    assert gc.collect() >= 1


def fail() -> None:
    with garbage_collection_paused():
        assert not gc.isenabled()
        raise ValueError("a fault")


def test_collection_resumes_after_an_error_too() -> None:
    with pytest.raises(ValueError, match="a fault"):
        fail()
    assert gc.isenabled()


def test_nested_pauses_end_with_the_outer_one() -> None:
    with garbage_collection_paused():
        with garbage_collection_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
