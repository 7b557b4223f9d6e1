"""The process that recovers signers, over a real socket."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from tests.rigs.in_process import unmeasured
from tests.rigs.values import a_key

from foretell.app.running import STOP_SIGNALS
from foretell.app.signer_recovery.client import COMMAND
from foretell.app.signer_recovery.process import PIECE_MAX, serve
from foretell.domain.values.eip712 import address_of_key, sign_digest
from foretell.domain.values.hexadecimal import address_bytes, keccak256
from foretell.domain.values.signer_recovery import (
    ANSWER_BYTES,
    NO_SIGNER,
    RECOVERED,
    REQUEST_BYTES,
    answer_without_signer,
)

SOON_S = 60.0
DIGEST = keccak256(b"something to sign")
SIGNED = DIGEST + sign_digest(DIGEST, a_key("alice"))
OFF_CURVE = DIGEST + b"\xff" * 32 + b"\x01" * 32 + b"\x1b"
SIGNER = bytes([RECOVERED]) + address_bytes(address_of_key(a_key("alice")))
WITHOUT_SIGNER = answer_without_signer(NO_SIGNER)


@pytest.fixture
def ours() -> Iterator[socket.socket]:
    """Our end of a socket whose other end is served by a thread, which ends after it."""
    ours, theirs = socket.socketpair()
    ours.settimeout(SOON_S)
    with ours, theirs:
        server = threading.Thread(target=serve, args=(theirs.fileno(),))
        server.start()
        yield ours
        ours.close()
        server.join(SOON_S)
        assert not server.is_alive()


def receive(ours: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count * ANSWER_BYTES:
        received += ours.recv(4096)
    return received


@pytest.mark.parametrize("bytes_at_once", [1, 50, REQUEST_BYTES, REQUEST_BYTES + 1, 10_000])
def test_requests_that_arrive_in_parts_are_answered_whole(
    ours: socket.socket, bytes_at_once: int
) -> None:
    requests = (SIGNED + OFF_CURVE + SIGNED) * PIECE_MAX
    for at in range(0, len(requests), bytes_at_once):
        ours.sendall(requests[at : at + bytes_at_once])
    assert receive(ours, 3 * PIECE_MAX) == (SIGNER + WITHOUT_SIGNER + SIGNER) * PIECE_MAX


def test_no_request_waits_for_more_than_a_piece(ours: socket.socket) -> None:
    ours.sendall(SIGNED * (PIECE_MAX + 1) + SIGNED[:1])
    assert len(receive(ours, PIECE_MAX + 1)) == (PIECE_MAX + 1) * ANSWER_BYTES


@pytest.mark.parametrize("requests", [b"", SIGNED * 200], ids=["idle", "answers unread"])
def test_attack_l11_the_process_ends_quietly_with_the_connection(requests: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [*COMMAND, str(theirs.fileno())], pass_fds=[theirs.fileno()], stderr=subprocess.PIPE
        )
        theirs.close()
        ours.sendall(requests)
    _, errors = process.communicate(timeout=SOON_S)
    assert (process.returncode, errors) == (0, b"")


def test_the_process_ignores_the_stop_signals_of_a_group() -> None:
    """A terminal or a service stops a whole group; the server that ends in order still needs its signers."""
    ours, theirs = socket.socketpair()
    ours.settimeout(SOON_S)
    with ours, theirs:
        process = subprocess.Popen([*COMMAND, str(theirs.fileno())], pass_fds=[theirs.fileno()])
        theirs.close()
        ours.sendall(SIGNED)
        assert receive(ours, 1) == SIGNER
        for number in STOP_SIGNALS:
            os.kill(process.pid, number)
        ours.sendall(SIGNED)
        assert receive(ours, 1) == SIGNER
    assert process.wait(SOON_S) == 0


def test_the_process_imports_nothing_of_the_server() -> None:
    code = (
        "import sys, foretell.app.signer_recovery.process\n"
        "print(sorted(sys.modules.keys() & {'asyncio', 'socket', 'structlog', 'msgspec', 'uvloop'}))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env=unmeasured()
    )
    printed = ended.stdout
    assert printed.strip() == b"[]"
