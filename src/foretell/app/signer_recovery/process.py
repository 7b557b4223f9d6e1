"""A process that recovers signers, for one that has something better to do.

Argument: the number of a socket that it inherits. It reads digests with their signatures, 97 bytes
each, and answers each with 21 bytes in the same order: whether there is a signer, and its address.
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
ASKED_BYTES: Final = DIGEST_BYTES + SIGNATURE_BYTES
ANSWER_BYTES: Final = 21
ASKED_AT_ONCE_MAX: Final = 32
"""How many are answered together: the first of them waits for the last."""

NO_SIGNER: Final = bytes(ANSWER_BYTES)


def answer(asked: bytes) -> bytes:
    """Return who signed a digest, or that nobody can have."""
    try:
        signer = recover_signer(asked[:DIGEST_BYTES], asked[DIGEST_BYTES:])
    except MalformedSignature:
        return NO_SIGNER
    return b"\x01" + address_bytes(signer)


def serve(line: socket.socket) -> None:
    """Answer until the line closes."""
    arrived = b""
    while more := line.recv(ASKED_AT_ONCE_MAX * ASKED_BYTES):
        arrived += more
        end = len(arrived) - len(arrived) % ASKED_BYTES
        each = range(0, end, ASKED_BYTES)
        line.sendall(b"".join(answer(arrived[at : at + ASKED_BYTES]) for at in each))
        arrived = arrived[end:]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as inherited:
        serve(inherited)
