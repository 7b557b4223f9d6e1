"""The terms of a question that its creator asked, and their comparison with a plan's.

A creator may ask a question before the worker plans it. The liveness of an optimistic one decides how long a
wrong answer can be disputed, and that of a direct one when anybody may have it ended without its proposers. So a
question with other terms than the plan's is never opened to trading.
"""

from typing import Final, NamedTuple

END_EARLY_MAX_S: Final = 3_600
"""The most time by which the stated end of a question of the direct stack may lie before the payload's."""
END_LATE_MAX_S: Final = 2 * 365 * 24 * 3_600
"""The most by which it may lie after that: no question that states none ends later."""
DEFAULT_END_S: Final = END_LATE_MAX_S
"""When a question of the direct stack ends that states no end, counted from when it was asked."""


class AskedTerms(NamedTuple):
    """The reward, the bond and the liveness of a question."""

    reward_units: int
    bond_units: int
    liveness_s: int

    def satisfies(self, planned: "AskedTerms") -> bool:
        """Return whether these are the planned terms; a higher reward is no other term.

        An installation that lowers its reward still adopts the questions of before.
        """
        return self.reward_units >= planned.reward_units and self[1:] == planned[1:]

    def ends_with(self, planned: "AskedTerms") -> bool:
        """Return whether a question of the direct stack ends about when it would by a plan of its time.

        Its own plan may be sent days after it was made, which makes its end that much later.
        """
        late_s = (self.liveness_s or DEFAULT_END_S) - planned.liveness_s
        return -END_EARLY_MAX_S <= late_s <= END_LATE_MAX_S

    def wire(self) -> dict[str, str]:
        """Return the terms as the details of a refusal have them: base units and seconds."""
        return {
            "reward": str(self.reward_units),
            "bond": str(self.bond_units),
            "livenessSeconds": str(self.liveness_s),
        }

    def describe(self) -> str:
        """Return the terms as a part of a sentence."""
        return (
            f"a reward of {self.reward_units} and a bond of {self.bond_units} base units,"
            f" and a liveness of {self.liveness_s} s"
        )
