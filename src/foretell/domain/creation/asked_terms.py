"""The terms of an optimistic question, and their comparison with a plan's.

A creator may ask a question before the worker plans it. Its liveness decides how long a wrong answer can
be disputed, so a question with other terms than the plan's is never opened to trading.
"""

from typing import NamedTuple


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
