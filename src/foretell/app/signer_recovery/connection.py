"""Our end of the socket to the process that recovers signers.

A piece is sent at once, not at the end of the turn of the event loop as a transport of uvloop would
send it: the process works while the loop reads further orders.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from foretell.domain.values.signer_recovery import ANSWER_BYTES

READ_BYTES_MAX: Final = 1_024 * ANSWER_BYTES


class RecoveryConnection:
    """Sends requests without waiting, and passes whole answers on.

    What the socket does not take is kept until the next answers come: it is full of requests then, so
    answers do come, unless the process hangs and is replaced.
    """

    def __init__(self, connected: socket.socket, on_answers: Callable[[bytes], None]) -> None:
        connected.settimeout(0)
        self._socket = connected
        self._on_answers = on_answers
        self._unsent = bytearray()
        self._received = b""
        self._is_open = True
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connected, self._read)

    def send(self, requests: bytes) -> None:
        """Send requests; a closed connection loses them, and they are sent again on the next."""
        if not self._is_open:
            return
        if self._unsent:
            self._unsent += requests
            return
        sent = self._try_send(requests)
        if sent < len(requests):
            self._unsent += requests[sent:]

    def close(self) -> None:
        """Close, after which no answer is received."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._socket)
            self._socket.close()

    def _try_send(self, requests: bytes | bytearray) -> int:
        """Return how many bytes the socket takes; all of them are lost on one that broke."""
        try:
            return self._socket.send(requests)
        except BlockingIOError:
            return 0
        except OSError:
            return len(requests)

    def _read(self) -> None:
        try:
            more = self._socket.recv(READ_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        if not more:
            self.close()
            return
        if self._unsent:
            del self._unsent[: self._try_send(self._unsent)]
        received = self._received + more if self._received else more
        end = len(received) - len(received) % ANSWER_BYTES
        self._received = received[end:]
        try:
            self._on_answers(received[:end])
        except BaseException:  # the answers left are lost, so those requests must be sent again
            self.close()
            raise
