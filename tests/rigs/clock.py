"""A clock for rigs: it stands still until a test moves it."""

from tests.rigs.values import NOW_MS


class Clock:
    """A clock that a test moves, and may break."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self.is_broken = False

    def __call__(self) -> int:
        if self.is_broken:
            raise RuntimeError("the clock is broken")
        return self.now_ms

    def move(self, ms: int) -> None:
        self.now_ms += ms
