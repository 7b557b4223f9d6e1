"""The expected reports and answers of an event's questions, by slow and obvious rules instead of the contracts."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

HOLD_S: Final = 7 * 24 * 3600
EMERGENCY_DELAY_S: Final = 3_600
ANSWER_S: Final = 7 * 24 * 3600
"""How long after the delay a flag lasts."""


@dataclass
class ExpectedReports:
    """Flags, reports and answers, by the question's index."""

    flagged_at: dict[int, int] = field(default_factory=dict)
    reported_at: dict[int, int] = field(default_factory=dict)
    said: dict[int, bool] = field(default_factory=dict)
    yes_before: dict[int, int | None] = field(default_factory=dict)
    last_yes: int | None = None
    answered: dict[int, bool] = field(default_factory=dict)

    @property
    def is_determined(self) -> bool:
        return True in self.answered.values()

    def is_flagged(self, index: int, now: int) -> bool:
        """Return whether a question has a flag that has not lapsed."""
        flagged_at = self.flagged_at.get(index)
        return flagged_at is not None and now < flagged_at + EMERGENCY_DELAY_S + ANSWER_S

    def flag(self, index: int, now: int) -> bool:
        if self.is_flagged(index, now):
            return False
        self.flagged_at[index] = now
        return True

    def unflag(self, index: int) -> bool:
        return self.flagged_at.pop(index, None) is not None

    def report(self, index: int, now: int, *, is_yes: bool) -> bool:
        """Keep what the oracle says of a question, once."""
        if index in self.reported_at:
            return False
        if index not in self.answered and is_yes and not self.is_determined:
            self.yes_before[index], self.last_yes = self.last_yes, index
        self.reported_at[index], self.said[index] = now, is_yes
        return True

    def is_held(self, index: int, now: int) -> bool:
        """Return whether a flag holds a report up."""
        is_late = now >= self.reported_at.get(index, now) + HOLD_S
        return self.is_flagged(index, now) and not is_late

    def pass_on(self, index: int, now: int) -> bool:
        """Answer a question as it was reported, or No once another one of the event is Yes."""
        if index in self.answered:
            return False
        if self.is_determined:
            self.answered[index] = False
            return True
        if index not in self.reported_at or self.is_held(index, now):
            return False
        before = self.yes_before.get(index)
        if self.said[index] and before is not None and before not in self.answered:
            return False
        self.answered[index] = self.said[index]
        return True

    def answer(self, index: int, now: int, *, is_yes: bool) -> bool:
        """Report and pass on in one transaction: both, or neither."""
        if is_yes and self.is_determined:
            return False
        trial = deepcopy(self)
        if not trial.report(index, now, is_yes=is_yes) or not trial.pass_on(index, now):
            return False
        vars(self).update(vars(trial))
        return True

    def answer_by_emergency(self, index: int, now: int, *, is_yes: bool) -> bool:
        """Answer a flagged question after the delay, as the admin."""
        is_due = now >= self.flagged_at.get(index, now) + EMERGENCY_DELAY_S
        if (
            not self.is_flagged(index, now)
            or not is_due
            or index in self.answered
            or (is_yes and self.is_determined)
        ):
            return False
        self.answered[index] = is_yes
        return True
