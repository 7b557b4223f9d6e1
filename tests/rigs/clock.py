"""A clock for rigs: it stands still until a test moves it."""

from tests.rigs.values import NOW_MS


class Clock:
    """A clock that a test moves, and may break."""

    def __init__(self) -> None:
        self.at_ms = NOW_MS
        self.is_broken = False

    def command_time(self, at_ms: int) -> int:
        """Return the time with which a command of a test is submitted."""
        return at_ms

    def now_ms(self) -> int:
        if self.is_broken:
            raise RuntimeError("the clock is broken")
        return self.at_ms

    def now_s(self) -> float:
        return self.now_ms() / 1000

    def move(self, ms: int) -> None:
        self.at_ms += ms

    def move_s(self, seconds: float) -> None:
        self.at_ms += int(seconds * 1000)
