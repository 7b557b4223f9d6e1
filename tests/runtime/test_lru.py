from hypothesis import given
from hypothesis import strategies as st

from foretell.runtime.lru import LruCache

KEYS = st.integers(0, 6)


@given(st.lists(st.tuples(KEYS, st.booleans())), st.integers(1, 4))
def test_the_entries_used_last_stay(uses: list[tuple[int, bool]], entries_max: int) -> None:
    cache: LruCache[int, str] = LruCache(entries_max)
    used: list[int] = []
    for key, is_put in uses:
        if is_put:
            cache.put(key, str(key))
        if is_put or key in used[-entries_max:]:
            assert cache.get(key) == str(key)
            used = [*(each for each in used if each != key), key]
        else:
            assert cache.get(key) is None
        used = used[-entries_max:]
    assert list(cache) == used
    assert len(cache) == len(used)


def test_entries_are_dropped_one_by_one_or_all_at_once() -> None:
    cache: LruCache[str, int] = LruCache(3)
    for number, key in enumerate("abc"):
        cache.put(key, number)
    cache.discard("b")
    cache.discard("x")
    assert list(cache) == ["a", "c"]
    cache.clear()
    assert len(cache) == 0
