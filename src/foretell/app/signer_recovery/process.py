"""The process that recovers the signers of orders.

Argument: the number of a socket that it inherits. It reads requests of 97 bytes each, a digest and a signature,
and answers them in the same order with 21 bytes each: whether there is a signer, and its address.
It ends when the other end of the socket closes.
"""

import signal
import socket
import sys
from typing import Final

from foretell.domain.errors.families import MalformedSignature
from foretell.domain.values.eip712 import SIGNATURE_BYTES, recover_signer
from foretell.domain.values.hexadecimal import address_bytes

DIGEST_BYTES: Final = 32
REQUEST_BYTES: Final = DIGEST_BYTES + SIGNATURE_BYTES
ANSWER_BYTES: Final = 21
BATCH_MAX: Final = 32
"""Requests that are answered together: the first of them waits for the last."""

NO_SIGNER: Final = bytes(ANSWER_BYTES)


def answer(request: bytes) -> bytes:
    """Return the signer of a digest, or that there is none."""
    try:
        signer = recover_signer(request[:DIGEST_BYTES], request[DIGEST_BYTES:])
    except MalformedSignature:
        return NO_SIGNER
    return b"\x01" + address_bytes(signer)


def serve(connection: socket.socket) -> None:
    """Answer requests until the connection closes."""
    received = b""
    while more := connection.recv(BATCH_MAX * REQUEST_BYTES):
        received += more
        end = len(received) - len(received) % REQUEST_BYTES
        starts = range(0, end, REQUEST_BYTES)
        connection.sendall(
            b"".join(answer(received[start : start + REQUEST_BYTES]) for start in starts)
        )
        received = received[end:]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as inherited:
        serve(inherited)
