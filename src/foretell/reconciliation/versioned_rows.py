"""Values as they are now, and as each was after the blocks that changed it."""

from typing import Final, Generic, TypeVar

from foretell.store.spill import SpilledRows, SpillFile

K = TypeVar("K", bound=str | tuple[str | bool, ...])
V = TypeVar("V")


class VersionedRows(Generic[K, V]):
    """Values by key, with a default; `history` has one for each key and block that changed it."""

    def __init__(
        self, spill: SpillFile, name: str, columns: int, kind: type[V], default: V
    ) -> None:
        self.now: Final[SpilledRows[K, V]] = spill.mapping(name, columns, kind, default)
        self.history: Final[SpilledRows[tuple[str | bool | int, ...], V]] = spill.mapping(
            f"{name}_history", columns + 1, kind
        )
        self._before_block: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        return self.now[key]

    def __setitem__(self, key: K, value: V) -> None:
        """Set a value within a block."""
        self._before_block.setdefault(key, self.now[key])
        self.now[key] = value

    def close_block(self, number: int) -> None:
        """Keep each value that differs from the one before the block."""
        for key, before in self._before_block.items():
            value = self.now[key]
            if value != before:
                parts: tuple[str | bool, ...] = (key,) if isinstance(key, str) else key
                self.history[*parts, number] = value
        self._before_block.clear()
