"""An allowance of what is read, sent or opened in a time."""


class GrowingAllowance:
    """An amount that grows with time up to a burst; what is taken beyond it is a debt."""

    __slots__ = ("_at_s", "_burst", "_left", "_per_s")

    def __init__(self, burst: float, per_s: float, now_s: float) -> None:
        self._burst, self._per_s = burst, per_s
        self._left, self._at_s = burst, now_s

    def take(self, amount: float, now_s: float) -> float:
        """Take an amount, and return the seconds until the debt is paid; zero if there is none."""
        grown = self._left + (now_s - self._at_s) * self._per_s
        self._left, self._at_s = min(self._burst, grown) - amount, now_s
        return max(0.0, -self._left / self._per_s)

    def try_take(self, amount: float, now_s: float) -> bool:
        """Take an amount if that makes no debt, and return whether it was taken."""
        self.take(0.0, now_s)
        if self._left < amount:
            return False
        self._left -= amount
        return True
