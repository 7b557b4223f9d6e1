"""The child process that stores a dump of the sandbox's chain, or prepares the state of its next start.

The job comes on standard input, which stays open: the child ends with its parent. It imports little, because a
busy chain has one often.
"""

import http.client
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from foretell.chain.sandbox.saved_state import SavedState

DUMP: Final = "anvil_dumpState"
DUMP_DEADLINE_S: Final = 120.0
DUMP_BYTES_MAX: Final = 1024**3
"""Of a dump, packed and in hexadecimal."""
NICENESS: Final = 5
"""Of a child that stores a dump: nothing waits for it."""
_REQUEST: Final = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": DUMP, "params": []})
_HEADERS: Final = {"content-type": "application/json"}


class StateJob(msgspec.Struct, frozen=True):
    """The folder of a chain's states, and the node to dump; without a node, the next start is prepared."""

    folder: str
    rpc_url: str | None = None
    receive_s: float = DUMP_DEADLINE_S
    """How long a node may send nothing."""


class StateResult(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of the state, unpacked; the file to load; files found damaged; or the failure."""

    state_bytes: int = 0
    seconds: float = 0.0
    """The time of the work, without the start of a process."""
    file: str | None = None
    damaged: Sequence[str] = ()
    failure: tuple[int | None, str, str | None] | None = None
    """The number, the words and the file of a failure of the system."""
    refusal: str | None = None
    """The words of a node that gave no dump."""


class _Dump(msgspec.Struct, frozen=True):
    """A node's response."""

    result: str | None = None
    error: msgspec.Raw = msgspec.Raw(b"")


def carry_out(job: StateJob) -> StateResult:
    """Store a dump, or prepare the state to load."""
    saved = SavedState(Path(job.folder))
    try:
        if job.rpc_url is None:
            prepared = saved.prepare()
            file = prepared.file
            return StateResult(
                state_bytes=0 if file is None else file.stat().st_size,
                file=None if file is None else str(file),
                damaged=prepared.damaged,
            )
        began_s = time.monotonic()
        state_bytes = saved.keep(_fetch_dump(job.rpc_url, job.receive_s))
        return StateResult(state_bytes=state_bytes, seconds=time.monotonic() - began_s)
    except (http.client.HTTPException, ConnectionError, TimeoutError, ValueError) as error:
        return StateResult(refusal=str(error) or type(error).__name__)
    except OSError as error:
        return StateResult(failure=(error.errno, error.strerror or str(error), error.filename))


def _fetch_dump(rpc_url: str, receive_s: float) -> str:
    """Return a node's state, which is gzip in hexadecimal."""
    node = urlsplit(rpc_url)
    assert node.hostname is not None
    connection = http.client.HTTPConnection(node.hostname, node.port, timeout=receive_s)
    try:
        connection.request("POST", node.path or "/", _REQUEST, _HEADERS)
        answer = connection.getresponse().read(DUMP_BYTES_MAX + 1)
    finally:
        connection.close()
    if len(answer) > DUMP_BYTES_MAX:
        raise ValueError(f"its state has more than {DUMP_BYTES_MAX} bytes")
    dump = msgspec.json.decode(answer, type=_Dump)
    if dump.result is None:
        raise ValueError(bytes(dump.error).decode(errors="replace"))
    return dump.result


def main() -> None:
    """Carry out the job of standard input, and write the result."""
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=StateJob)
    if job.rpc_url is not None:
        os.nice(NICENESS)

    def end_with_parent() -> None:
        os.read(sys.stdin.fileno(), 1)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    sys.stdout.buffer.write(msgspec.json.encode(carry_out(job)))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
