"""A queue of requests for signers, which are answered in their order.

The requests of a turn of the event loop are sent in pieces: a full one at once, so that the process
works while the loop reads the next orders, and the rest at the end of the turn. A request that is alone is
recovered in the loop: to wake the process and to be woken by it takes longer than a recovery.
"""

import asyncio

from foretell.app.signer_recovery.curve import Recoverer
from foretell.app.signer_recovery.process import PIECE_MAX
from foretell.app.signer_recovery.waiting_requests import OnRecovered, Piece, WaitingRequests
from foretell.domain.values.signer_recovery import REQUEST_BYTES


class RecoveryQueue:
    """Submits requests of one receiver, which gets every answer once, in the order of the requests."""

    def __init__(
        self, waiting: WaitingRequests, recoverer: Recoverer, on_recovered: OnRecovered
    ) -> None:
        self._waiting = waiting
        self._recoverer = recoverer
        self._on_recovered = on_recovered
        self._collected: list[bytes] = []
        self._is_flush_due = False

    def submit(self, request: bytes) -> None:
        """Queue a request of 97 bytes; call this in the thread of the event loop.

        Raises EngineBusy when too many requests wait, and EngineRestarting after the recovery was
        closed: then there is no answer.
        """
        assert len(request) == REQUEST_BYTES
        self._waiting.admit()
        self._collected.append(request)
        if len(self._collected) == PIECE_MAX:
            self._send()
        elif not self._is_flush_due:
            self._is_flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Send what the turn has collected, or recover the signer when nothing else waits.

        The loop is stopped for one recovery a turn at most: a second request of the turn makes both go to
        the process, and so does one that the process has not answered.
        """
        self._is_flush_due = False
        if not self._collected:
            return
        if self._waiting.count == 1:
            self._waiting.count = 0
            self._on_recovered(self._recoverer.answer(self._collected.pop()))
        else:
            self._send()

    def _send(self) -> None:
        requests, self._collected = self._collected, []
        now_s = asyncio.get_running_loop().time()
        self._waiting.send(Piece(requests, self._on_recovered, now_s))
