"""Requests for signers that were sent and are not answered.

Answers carry no number: a process answers in the order of the requests, so every request that was
sent is kept, late ones too, and the first answer belongs to the first of them. A new process has seen
none of them, so all are sent to it again before anything new.
"""

from collections import deque
from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple

from foretell.app.signer_recovery.connection import RecoveryConnection
from foretell.domain.errors.exchange import EngineBusy, EngineRestarting
from foretell.domain.values.signer_recovery import (
    ANSWER_BYTES,
    CLOSED,
    LATE,
    REQUEST_BYTES,
    answer_without_signer,
)
from foretell.runtime.child_processes import RestartBackoff

OnRecovered = Callable[[bytes], None]
"""Receives whole answers in the order of their requests, in the thread of the event loop.

It may submit further requests, and must not raise.
"""


class RecoveryLimits(NamedTuple):
    """Bounds of the waiting requests, in number, attempts and seconds."""

    waiting_max: int = 10_000
    """Requests of 97 bytes that are not answered, of all queues together."""
    attempts_max: int = 3
    """Processes that may end over the first waiting piece before it is refused."""
    check_every_s: float = 1.0
    answer_deadline_s: float = 5.0
    """A process that takes longer for its first waiting piece hangs, and is killed."""
    recover_deadline_s: float = 10.0
    """How long a request may wait in all, attempts and restarts included, checks apart."""
    stop_deadline_s: float = 5.0
    restarts: RestartBackoff = RestartBackoff(most_s=1.0)


class Piece:
    """Requests that one queue sent together, with the number of those that have no answer yet."""

    __slots__ = (
        "attempts",
        "first_sent_at_s",
        "is_refused",
        "on_recovered",
        "requests",
        "sent_at_s",
        "waiting",
    )

    def __init__(self, requests: list[bytes], on_recovered: OnRecovered, now_s: float) -> None:
        self.requests = b"".join(requests)
        self.waiting = len(requests)
        self.on_recovered = on_recovered
        self.sent_at_s = self.first_sent_at_s = now_s
        self.attempts = 1
        self.is_refused = False

    def unanswered(self) -> bytes:
        """Return the requests that have no answer."""
        return self.requests[-self.waiting * REQUEST_BYTES :]

    def refuse(self, outcome: int) -> None:
        """Refuse the requests that have no answer, unless that was done."""
        if not self.is_refused:
            self.is_refused = True
            self.on_recovered(answer_without_signer(outcome) * self.waiting)


class WaitingRequests:
    """The requests of all queues that have no answer, and the connection to the process."""

    def __init__(self, limits: RecoveryLimits) -> None:
        self.limits = limits
        self.count = 0
        """Requests without an answer, those included that are not sent yet."""
        self._pieces: deque[Piece] = deque()
        self._connection: RecoveryConnection | None = None
        self._is_closed = False

    @property
    def first(self) -> Piece | None:
        """The piece that is answered next, None while nothing is sent."""
        return self._pieces[0] if self._pieces else None

    def admit(self) -> None:
        """Count a new request, or refuse it."""
        if self._is_closed:
            raise EngineRestarting
        if self.count >= self.limits.waiting_max:
            raise EngineBusy
        self.count += 1

    def send(self, piece: Piece) -> None:
        """Send a piece of counted requests, now or to the next process."""
        if self._is_closed:
            self.count -= piece.waiting
            piece.refuse(CLOSED)
            return
        self._pieces.append(piece)
        if self._connection is not None:
            self._connection.send(piece.requests)

    def connect(self, connection: RecoveryConnection, now_s: float) -> None:
        """Send everything that waits to a new process."""
        assert self._connection is None
        self._connection = connection
        if self._pieces:
            self._pieces[0].attempts += 1
        for piece in self._pieces:
            piece.sent_at_s = now_s
            connection.send(piece.unanswered())

    def disconnect(self) -> None:
        """Close the connection, if there is one; requests wait for the next process."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._drop_refused()

    def close(self) -> None:
        """Refuse everything that waits, and whatever comes."""
        self._is_closed = True
        while self._pieces:
            self.refuse_first(CLOSED)

    def on_answers(self, answers: bytes) -> None:
        """Pass answers on to the queues of the first requests.

        A piece is counted as answered before it is passed on: whatever its receiver does or raises, no
        answer is given twice.
        """
        at = 0
        while at < len(answers):
            piece = self._pieces[0]
            answered = answers[at : at + piece.waiting * ANSWER_BYTES]
            at += len(answered)
            piece.waiting -= len(answered) // ANSWER_BYTES
            self.count -= len(answered) // ANSWER_BYTES
            if piece.waiting == 0:
                self._pieces.popleft()
            if not piece.is_refused:
                piece.on_recovered(answered)

    def refuse_first(self, outcome: int) -> None:
        """Refuse the first piece, which is not sent again."""
        piece = self._pieces.popleft()
        self.count -= piece.waiting
        piece.refuse(outcome)

    def refuse_late(self, late_at_s: float) -> None:
        """Refuse what was first sent at a time or before; a process may still answer it."""
        late = takewhile(lambda piece: piece.first_sent_at_s <= late_at_s, self._pieces)
        for piece in list(late):
            piece.refuse(LATE)
        if self._connection is None:
            self._drop_refused()

    def _drop_refused(self) -> None:
        """Forget the refused pieces, which no process will answer."""
        self.count -= sum(piece.waiting for piece in self._pieces if piece.is_refused)
        self._pieces = deque(piece for piece in self._pieces if not piece.is_refused)
