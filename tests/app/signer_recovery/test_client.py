import asyncio
import errno
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.rigs.values import a_key

from foretell.app.signer_recovery.client import SignerRecovery
from foretell.app.signer_recovery.waiting_requests import RecoveryLimits
from foretell.domain.errors.exchange import EngineBusy, EngineRestarting
from foretell.domain.errors.families import MalformedSignature
from foretell.domain.values.eip712 import address_of_key, sign_digest
from foretell.domain.values.hexadecimal import Address
from foretell.runtime.child_processes import RestartBackoff

pytestmark = pytest.mark.anyio

OFF_CURVE = b"\xff" * 32 + b"\x01" * 32 + b"\x1b"
ALICE = address_of_key(a_key("alice"))
SOON_S = 60.0
QUICK = RecoveryLimits(
    check_every_s=0.05,
    answer_deadline_s=SOON_S,
    recover_deadline_s=SOON_S,
    restarts=RestartBackoff(first_s=0.01, most_s=0.01),
)
"""A process that starts on a busy machine is late for the usual deadlines."""
Answer = TypeVar("Answer")


def a_digest(number: int) -> bytes:
    return number.to_bytes(32, "big")


def signed(number: int, name: str = "alice") -> tuple[bytes, bytes]:
    return a_digest(number), sign_digest(a_digest(number), a_key(name))


class Spawns:
    """Starts the processes of a recovery, and fails to for as long as a test wants."""

    def __init__(self) -> None:
        self.failure: OSError | None = None
        self.script = ""
        self.count = 0
        self.processes: list[asyncio.subprocess.Process] = []

    async def __call__(self, *command: str, **options: Any) -> asyncio.subprocess.Process:
        self.count += 1
        if self.failure is not None:
            raise self.failure
        if self.script:
            command = (sys.executable, "-c", self.script, command[-1])
        process = await asyncio.create_subprocess_exec(*command, **options)
        self.processes.append(process)
        return process

    async def until(self, count: int) -> None:
        """Return when a start was tried this many times."""
        async with asyncio.timeout(SOON_S):
            while self.count < count:  # noqa: ASYNC110 - the recovery publishes no event
                await asyncio.sleep(0.005)


@pytest.fixture
def spawns() -> Spawns:
    return Spawns()


@pytest.fixture
async def recovery(spawns: Spawns) -> AsyncIterator[SignerRecovery]:
    recovery = SignerRecovery(QUICK, spawn=spawns)
    await recovery.start()
    running = asyncio.create_task(recovery.run())
    yield recovery
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await recovery.close()


def limit(recovery: SignerRecovery, **changed: float) -> None:
    """Change limits of a recovery that runs."""
    recovery.limits = recovery.limits._replace(**changed)  # type: ignore[arg-type]


async def soon(waits: Awaitable[Answer]) -> Answer:
    """Return what is awaited, which comes soon."""
    return await asyncio.wait_for(waits, SOON_S)


def noted_pairs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[socket.socket, socket.socket]]:
    """Return a list of the pairs of sockets that are made from now on."""
    pairs: list[tuple[socket.socket, socket.socket]] = []
    make = socket.socketpair

    def note() -> tuple[socket.socket, socket.socket]:
        pairs.append(make())
        return pairs[-1]

    monkeypatch.setattr(socket, "socketpair", note)
    return pairs


def freeze(pid: int) -> None:
    """Stop a process, and return when it is stopped."""
    os.kill(pid, signal.SIGSTOP)
    while ") T " not in Path(f"/proc/{pid}/stat").read_text():
        time.sleep(0.001)


def end_before_kill(
    process: asyncio.subprocess.Process, monkeypatch: pytest.MonkeyPatch
) -> asyncio.Event:
    """Stop a process, and let it end just before it is killed; return the event of that."""
    freeze(process.pid)
    killed = asyncio.Event()

    def kill() -> None:
        os.kill(process.pid, signal.SIGKILL)
        killed.set()
        raise ProcessLookupError

    monkeypatch.setattr(process, "kill", kill)
    return killed


def two(recovery: SignerRecovery, number: int = 1) -> Awaitable[list[Address]]:
    """Return the signers of two requests, which go to the process: one alone would not."""
    requests = (signed(number), signed(number + 1))
    return asyncio.gather(*(recovery.recover(*request) for request in requests))


def pid_of(recovery: SignerRecovery) -> int:
    assert recovery.process_id is not None
    return recovery.process_id


@pytest.mark.parametrize("count", [1, 100])
async def test_requests_sent_together_are_each_answered(
    recovery: SignerRecovery, count: int
) -> None:
    names = [f"signer {number % 3}" for number in range(count)]
    answers = await asyncio.gather(
        *(recovery.recover(*signed(number, name)) for number, name in enumerate(names))
    )
    assert answers == [address_of_key(a_key(name)) for name in names]


async def test_a_signature_without_a_signer_fails_alone(recovery: SignerRecovery) -> None:
    answers = await asyncio.gather(
        recovery.recover(*signed(1)),
        recovery.recover(a_digest(2), OFF_CURVE),
        recovery.recover(*signed(3)),
        return_exceptions=True,
    )
    assert (answers[0], answers[2]) == (ALICE, ALICE)
    assert isinstance(answers[1], MalformedSignature)


async def test_a_canceled_request_disturbs_no_other(recovery: SignerRecovery) -> None:
    gone = asyncio.create_task(recovery.recover(a_digest(1), OFF_CURVE))
    await asyncio.sleep(0)
    gone.cancel()
    assert await recovery.recover(*signed(2)) == ALICE
    with pytest.raises(asyncio.CancelledError):
        await gone


async def test_requests_lost_with_a_process_are_sent_to_the_next(recovery: SignerRecovery) -> None:
    first = pid_of(recovery)
    os.kill(first, signal.SIGSTOP)
    requests = [asyncio.create_task(recovery.recover(*signed(number))) for number in range(3)]
    await asyncio.sleep(0.01)
    os.kill(first, signal.SIGKILL)
    await asyncio.sleep(0)
    requests.append(asyncio.create_task(recovery.recover(*signed(3))))
    assert await asyncio.gather(*requests) == [ALICE] * 4
    assert pid_of(recovery) != first


async def test_a_process_that_hangs_is_replaced(recovery: SignerRecovery, spawns: Spawns) -> None:
    first = pid_of(recovery)
    os.kill(first, signal.SIGSTOP)
    requests = two(recovery)
    limit(recovery, answer_deadline_s=0.1)
    await spawns.until(2)
    limit(recovery, answer_deadline_s=SOON_S)
    assert await soon(requests) == [ALICE, ALICE]
    assert pid_of(recovery) != first


async def test_an_idle_process_may_be_silent_for_long(recovery: SignerRecovery) -> None:
    limit(recovery, answer_deadline_s=0.0)
    first = pid_of(recovery)
    await asyncio.sleep(0.12)
    assert pid_of(recovery) == first


async def test_a_request_that_ends_every_process_is_refused(
    recovery: SignerRecovery, spawns: Spawns
) -> None:
    spawns.script = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).recv(97)"
    os.kill(pid_of(recovery), signal.SIGKILL)
    with pytest.raises(EngineBusy):
        await two(recovery)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EAGAIN])
async def test_a_process_that_cannot_be_started_is_started_later(
    recovery: SignerRecovery, spawns: Spawns, code: int
) -> None:
    spawns.failure = OSError(code, os.strerror(code))
    os.kill(pid_of(recovery), signal.SIGKILL)
    requests = two(recovery)
    await spawns.until(4)
    spawns.failure = None
    assert await soon(requests) == [ALICE, ALICE]
    assert len(spawns.processes) == 2


async def test_a_request_that_waits_for_a_process_that_cannot_be_started_is_refused(
    recovery: SignerRecovery, spawns: Spawns
) -> None:
    spawns.failure = BlockingIOError(errno.EAGAIN, "no process")
    os.kill(pid_of(recovery), signal.SIGKILL)
    await spawns.until(2)
    limit(recovery, recover_deadline_s=0.1)
    with pytest.raises(EngineBusy):
        await soon(two(recovery))
    limit(recovery, recover_deadline_s=SOON_S)
    assert await soon(recovery.recover(*signed(3))) == ALICE, "alone, it needs no process"
    spawns.failure = None
    assert await soon(two(recovery)) == [ALICE, ALICE]


async def test_nothing_stays_open_of_a_process_that_cannot_be_started(
    monkeypatch: pytest.MonkeyPatch, spawns: Spawns
) -> None:
    pairs = noted_pairs(monkeypatch)
    spawns.failure = OSError(errno.ENOMEM, "no memory")
    with pytest.raises(OSError, match="no memory"):
        await SignerRecovery(spawn=spawns).start()
    assert [each.fileno() for pair in pairs for each in pair] == [-1, -1]


async def test_a_process_whose_connection_cannot_be_made_ends(
    monkeypatch: pytest.MonkeyPatch, spawns: Spawns
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOMEM, "no memory")

    pairs = noted_pairs(monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(asyncio.get_running_loop(), "add_reader", fail)
        with pytest.raises(OSError, match="no memory"):
            await SignerRecovery(spawn=spawns).start()
    assert [each.fileno() for pair in pairs for each in pair] == [-1, -1]
    (process,) = spawns.processes
    assert await soon(process.wait()) == 0


async def test_a_process_that_ends_just_before_it_is_killed_is_replaced(
    recovery: SignerRecovery, spawns: Spawns, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = end_before_kill(spawns.processes[0], monkeypatch)
    limit(recovery, answer_deadline_s=0.0)
    requests = two(recovery)
    await soon(killed.wait())
    limit(recovery, answer_deadline_s=SOON_S)
    assert await soon(requests) == [ALICE, ALICE]
    assert len(spawns.processes) == 2


async def test_a_process_that_ends_just_before_it_is_killed_is_closed(
    spawns: Spawns, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovery = SignerRecovery(RecoveryLimits(stop_deadline_s=0.05), spawn=spawns)
    await recovery.start()
    killed = end_before_kill(spawns.processes[0], monkeypatch)
    await soon(recovery.close())
    assert killed.is_set()


async def test_a_request_that_waits_too_long_is_refused_and_disturbs_no_other(
    recovery: SignerRecovery,
) -> None:
    first = pid_of(recovery)
    os.kill(first, signal.SIGSTOP)
    limit(recovery, answer_deadline_s=SOON_S, recover_deadline_s=0.1)
    late = two(recovery)
    with pytest.raises(EngineBusy):
        await soon(late)
    limit(recovery, recover_deadline_s=SOON_S)
    answer = asyncio.create_task(recovery.recover(*signed(3, "bob")))
    await asyncio.sleep(0)
    os.kill(first, signal.SIGCONT)
    assert await soon(answer) == address_of_key(a_key("bob"))
    assert pid_of(recovery) == first


async def test_a_request_is_refused_in_time_while_processes_follow_each_other(
    recovery: SignerRecovery, spawns: Spawns
) -> None:
    spawns.script = "import socket, sys\nline = socket.socket(fileno=int(sys.argv[1]))\nwhile line.recv(97): pass"
    limit(recovery, answer_deadline_s=0.0, attempts_max=1_000)
    os.kill(pid_of(recovery), signal.SIGSTOP)
    requests = [asyncio.create_task(recovery.recover(*signed(number))) for number in range(2)]
    await spawns.until(3)
    limit(recovery, recover_deadline_s=1.0)
    answers = await soon(asyncio.gather(*requests, return_exceptions=True))
    assert [type(answer) for answer in answers] == [EngineBusy, EngineBusy]


async def test_more_requests_than_may_wait_are_refused(recovery: SignerRecovery) -> None:
    limit(recovery, waiting_max=2)
    answers = await asyncio.gather(
        *(recovery.recover(*signed(number)) for number in range(3)), return_exceptions=True
    )
    assert (answers[0], answers[1]) == (ALICE, ALICE)
    assert isinstance(answers[2], EngineBusy)


async def test_requests_that_wait_when_it_closes_are_refused() -> None:
    recovery = SignerRecovery()
    await recovery.start()
    pid = pid_of(recovery)
    os.kill(pid, signal.SIGSTOP)
    requests = two(recovery)
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGCONT)
    await recovery.close()
    with pytest.raises(EngineRestarting):
        await requests
    with pytest.raises(EngineRestarting):
        await recovery.recover(*signed(3))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_process_that_does_not_end_is_killed() -> None:
    recovery = SignerRecovery(RecoveryLimits(stop_deadline_s=0.05))
    await recovery.start()
    pid = pid_of(recovery)
    freeze(pid)
    await recovery.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
