"""The process that recovers the signers of orders.

Argument: the number of a socket that it inherits. It reads requests of 97 bytes each, a digest and a signature,
and answers them in the same order with 21 bytes each: whether there is a signer, and its address.
It ends when the other end of the socket closes. It imports little, so that it starts again soon.
"""

import contextlib
import os
import signal
import sys
from typing import Final

from foretell.app.signer_recovery.curve import Recoverer
from foretell.domain.values.signer_recovery import REQUEST_BYTES

PIECE_MAX: Final = 8
"""Requests that are sent and answered together: the first of them waits for the last."""


def serve(connection: int) -> None:
    """Answer the requests on a blocking stream socket until its other end closes."""
    answer_all = Recoverer().answer_all
    received = b""
    with contextlib.suppress(ConnectionError):  # closed before it read all answers
        while more := os.read(connection, PIECE_MAX * REQUEST_BYTES):
            received += more
            end = len(received) - len(received) % REQUEST_BYTES
            _write(connection, answer_all(received[:end]))
            received = received[end:]


def _write(connection: int, answers: bytes) -> None:
    while answers:
        answers = answers[os.write(connection, answers) :]


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(
            number, signal.SIG_IGN
        )  # sent to all processes of a service: the engine obeys
    serve(int(sys.argv[1]))
