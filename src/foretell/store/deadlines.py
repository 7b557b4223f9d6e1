"""Deadlines of transactions, which the database itself keeps: it ends the statement that runs at one."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.storage import ReadTooSlow, StoreUnavailable

DEADLINE_GRACE_S: Final = 5.0
"""The time after a deadline after which a database that does not answer is given up."""
INTERRUPT_AGAIN_S: Final = 0.05
"""SQLite forgets an interrupt between two statements, so it is repeated until the transaction has ended."""
OVERRUN_MAX_S: Final = 0.1
"""How long after a deadline PostgreSQL may end a statement: its limit is set again when so much time has passed."""


class Deadline:
    """The time by which a transaction ends, and the refusal of one that does not."""

    def __init__(
        self, duration_s: float, refusal: Callable[[float], ForetellError] = ReadTooSlow
    ) -> None:
        self.duration_s = duration_s
        self._refusal = refusal
        self._now_s = asyncio.get_running_loop().time
        self.at_s = self._now_s() + duration_s
        self.statement_s = math.inf
        """How long PostgreSQL lets each statement take."""

    def check(self) -> None:
        """Refuse to go on after the deadline."""
        if self.is_over:
            raise self.refusal

    @property
    def refusal(self) -> ForetellError:
        """What a transaction is refused with that has not ended."""
        return self._refusal(self.duration_s)

    @property
    def left_s(self) -> float:
        """The time until the deadline, none after it."""
        return max(0.0, self.at_s - self._now_s())

    @property
    def is_over(self) -> bool:
        """Whether the time has come."""
        return not self.left_s


def write_too_slow(duration_s: float) -> StoreUnavailable:
    """Return the refusal of a write of a request that has not ended by its deadline."""
    return StoreUnavailable(f"a write took longer than {duration_s:g} s, and was stopped")


@contextlib.asynccontextmanager
async def within(deadline: Deadline | None) -> AsyncIterator[None]:
    """Refuse what has not ended by the deadline, if there is one, also when the database ended it."""
    if deadline is None:
        yield
        return
    try:
        async with asyncio.timeout_at(deadline.at_s + DEADLINE_GRACE_S):
            yield
    except TimeoutError:
        raise deadline.refusal from None
    except StoreUnavailable as error:
        if not deadline.is_over:
            raise
        raise deadline.refusal from error


@contextlib.asynccontextmanager
async def ended_at(deadline: Deadline | None, connection: AsyncConnection) -> AsyncIterator[None]:
    """Let the database end the statement that runs at the deadline, if there is one."""
    if deadline is None:
        yield
        return
    if connection.dialect.name == "postgresql":
        await limit_statements(deadline, connection)
        yield
        return
    raw = await connection.get_raw_connection()
    interrupting = asyncio.create_task(_interrupt_at(deadline.at_s, raw.driver_connection))
    try:
        yield
    finally:
        interrupting.cancel()


async def limit_statements(deadline: Deadline, connection: AsyncConnection) -> None:
    """Let PostgreSQL end the next statement of a transaction with what is left of its time.

    A statement has as long as one before it if that is at most `OVERRUN_MAX_S` too much.
    """
    left_s = deadline.left_s
    if deadline.statement_s - left_s > OVERRUN_MAX_S:
        milliseconds = max(1, round(left_s * 1000))
        await connection.exec_driver_sql(f"SET LOCAL statement_timeout = {milliseconds}")
        deadline.statement_s = left_s


async def _interrupt_at(at_s: float, connection: Any) -> None:
    await asyncio.sleep(at_s - asyncio.get_running_loop().time())
    while True:
        await connection.interrupt()
        await asyncio.sleep(INTERRUPT_AGAIN_S)
