"""A bounded cache that drops the least recently used entry."""

from collections import OrderedDict
from collections.abc import ItemsView, Iterator, ValuesView
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """A cache of at most `entries_max` entries."""

    def __init__(self, entries_max: int) -> None:
        assert entries_max > 0
        self._entries_max = entries_max
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._entries)

    def items(self) -> ItemsView[Key, Value]:
        """Return all keys with their values, the least recently used first; that is no use of them."""
        return self._entries.items()

    def values(self) -> ValuesView[Value]:
        """Return all values, the least recently used first; that is no use of them."""
        return self._entries.values()

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, which counts as a use, or None."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: Key, value: Value) -> None:
        """Store a value; the least recently used entry is dropped if there are too many."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)

    def discard(self, key: Key) -> None:
        """Drop an entry if there is one."""
        self._entries.pop(key, None)

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()
