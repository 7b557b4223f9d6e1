import gc
from collections.abc import Iterator

import pytest

from foretell.runtime.garbage_collection import NEW_OBJECTS_MAX, settle_memory


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
    assert gc.get_threshold()[0] == NEW_OBJECTS_MAX
    assert gc.isenabled()


def test_what_comes_later_is_still_freed() -> None:
    settle_memory()
    circle: list[object] = []
    circle.append(circle)
    del circle
    assert gc.collect() >= 1
