import asyncio
import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar

import pytest
from tests.rigs.values import a_key

from foretell.app.signer_recovery import client as module
from foretell.app.signer_recovery.client import Recovery
from foretell.app.signer_recovery.process import ANSWER_BYTES, ASKED_BYTES, NO_SIGNER, serve
from foretell.domain.errors.exchange import EngineBusy, EngineRestarting
from foretell.domain.errors.families import MalformedSignature
from foretell.domain.values.eip712 import address_of_key, sign_digest
from foretell.domain.values.hexadecimal import address_bytes

pytestmark = pytest.mark.anyio

OFF_CURVE = b"\xff" * 32 + b"\x01" * 32 + b"\x1b"
ALICE = address_of_key(a_key("alice"))
SOON_S = 20.0
Answer = TypeVar("Answer")


def a_digest(number: int) -> bytes:
    return number.to_bytes(32, "big")


def signed(number: int, name: str = "alice") -> tuple[bytes, bytes]:
    return a_digest(number), sign_digest(a_digest(number), a_key(name))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESTART_S", 0.01)
    monkeypatch.setattr(module, "LOOK_S", 0.05)


@pytest.fixture
async def recovery() -> AsyncIterator[Recovery]:
    recovery = Recovery()
    await recovery.start()
    running = asyncio.create_task(recovery.run())
    yield recovery
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await recovery.close()


class FailingStarts:
    """Fails to start processes for as long as a test says, and keeps those that it starts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failure: OSError | None) -> None:
        self.failure = failure
        self.started: list[asyncio.subprocess.Process] = []
        self.count = 0
        self._start = asyncio.create_subprocess_exec
        monkeypatch.setattr(asyncio, "create_subprocess_exec", self.start)

    async def start(self, *args: Any, **options: Any) -> asyncio.subprocess.Process:
        self.count += 1
        if self.failure is not None:
            raise self.failure
        process = await self._start(*args, **options)
        self.started.append(process)
        return process

    async def until(self, count: int) -> None:
        """Return when a start was tried so many times."""
        async with asyncio.timeout(SOON_S):
            while self.count < count:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.005)


async def within(waits: Awaitable[Answer]) -> Answer:
    """Return what is waited for, which comes soon."""
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


def end_before_kill(recovery: Recovery, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Stop the process, and have it end just before it is killed; return that it has."""
    process = recovery._process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    killed = asyncio.Event()

    def kill() -> None:
        os.kill(process.pid, signal.SIGKILL)
        killed.set()
        raise ProcessLookupError

    monkeypatch.setattr(process, "kill", kill)
    return killed


def pid_of(recovery: Recovery) -> int:
    assert recovery._process is not None
    return recovery._process.pid


@pytest.mark.parametrize("count", [1, 100])
async def test_many_that_are_asked_at_once_are_each_answered_for_themselves(
    recovery: Recovery, count: int
) -> None:
    names = [f"signer {number % 3}" for number in range(count)]
    answers = await asyncio.gather(
        *(recovery.recover(*signed(number, name)) for number, name in enumerate(names))
    )
    assert answers == [address_of_key(a_key(name)) for name in names]


async def test_what_nobody_can_have_signed_fails_alone(recovery: Recovery) -> None:
    answers = await asyncio.gather(
        recovery.recover(*signed(1)),
        recovery.recover(a_digest(2), OFF_CURVE),
        recovery.recover(*signed(3)),
        return_exceptions=True,
    )
    assert (answers[0], answers[2]) == (ALICE, ALICE)
    assert isinstance(answers[1], MalformedSignature)


async def test_one_who_stops_waiting_disturbs_nobody(recovery: Recovery) -> None:
    gone = asyncio.create_task(recovery.recover(a_digest(1), OFF_CURVE))
    await asyncio.sleep(0)
    gone.cancel()
    assert await recovery.recover(*signed(2)) == ALICE
    with pytest.raises(asyncio.CancelledError):
        await gone


async def test_what_a_process_took_along_is_asked_of_the_next(recovery: Recovery) -> None:
    first = pid_of(recovery)
    os.kill(first, signal.SIGSTOP)
    asked = [asyncio.create_task(recovery.recover(*signed(number))) for number in range(3)]
    await asyncio.sleep(0.01)
    os.kill(first, signal.SIGKILL)
    await asyncio.sleep(0)
    asked.append(asyncio.create_task(recovery.recover(*signed(3))))
    assert await asyncio.gather(*asked) == [ALICE] * 4
    assert pid_of(recovery) != first


async def test_a_process_that_hangs_is_replaced(
    recovery: Recovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pid_of(recovery)
    os.kill(first, signal.SIGSTOP)
    waits = asyncio.create_task(recovery.recover(*signed(1)))
    monkeypatch.setattr(module, "ANSWER_DEADLINE_S", 0.1)
    while pid_of(recovery) == first:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.005)
    monkeypatch.undo()
    assert await waits == ALICE


async def test_a_process_that_nobody_asks_may_say_nothing_for_long(
    recovery: Recovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_DEADLINE_S", 0.0)
    first = pid_of(recovery)
    await asyncio.sleep(0.12)
    assert pid_of(recovery) == first


async def test_what_every_process_ends_over_is_refused(
    recovery: Recovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).recv(97)"
    monkeypatch.setattr(module, "COMMAND", (sys.executable, "-c", script))
    os.kill(pid_of(recovery), signal.SIGKILL)
    with pytest.raises(EngineBusy):
        await recovery.recover(*signed(1))


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EAGAIN])
async def test_a_process_that_cannot_be_started_is_started_later(
    recovery: Recovery, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    starts = FailingStarts(monkeypatch, OSError(code, os.strerror(code)))
    first = pid_of(recovery)
    os.kill(first, signal.SIGKILL)
    waits = asyncio.create_task(recovery.recover(*signed(1)))
    await starts.until(3)
    starts.failure = None
    assert await waits == ALICE
    assert pid_of(recovery) != first


async def test_what_waits_for_a_process_that_cannot_be_started_is_refused(
    recovery: Recovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = FailingStarts(monkeypatch, BlockingIOError(errno.EAGAIN, "no process"))
    os.kill(pid_of(recovery), signal.SIGKILL)
    await starts.until(1)
    monkeypatch.setattr(module, "RECOVER_DEADLINE_S", 0.1)
    with pytest.raises(EngineBusy):
        await within(recovery.recover(*signed(1)))
    monkeypatch.setattr(module, "RECOVER_DEADLINE_S", SOON_S)
    starts.failure = None
    assert await recovery.recover(*signed(2)) == ALICE


async def test_nothing_stays_open_of_a_process_that_cannot_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = noted_pairs(monkeypatch)
    FailingStarts(monkeypatch, OSError(errno.ENOMEM, "no memory"))
    with pytest.raises(OSError, match="no memory"):
        await Recovery().start()
    assert [each.fileno() for pair in pairs for each in pair] == [-1, -1]


async def test_a_process_whose_line_cannot_be_made_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Recovery) -> None:
        raise OSError(errno.ENOMEM, "no memory")

    pairs = noted_pairs(monkeypatch)
    starts = FailingStarts(monkeypatch, None)
    monkeypatch.setattr(module, "_Line", fail)
    with pytest.raises(OSError, match="no memory"):
        await Recovery().start()
    assert [each.fileno() for pair in pairs for each in pair] == [-1, -1]
    (process,) = starts.started
    assert await within(process.wait()) == 0


async def test_a_process_that_ends_just_before_it_is_killed_is_replaced(
    recovery: Recovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pid_of(recovery)
    killed = end_before_kill(recovery, monkeypatch)
    monkeypatch.setattr(module, "ANSWER_DEADLINE_S", 0.0)
    waits = asyncio.create_task(recovery.recover(*signed(1)))
    await within(killed.wait())
    monkeypatch.setattr(module, "ANSWER_DEADLINE_S", SOON_S)
    assert await within(waits) == ALICE
    assert pid_of(recovery) != first


async def test_a_process_that_ends_just_before_it_is_killed_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "STOP_DEADLINE_S", 0.05)
    recovery = Recovery()
    await recovery.start()
    killed = end_before_kill(recovery, monkeypatch)
    await within(recovery.close())
    assert killed.is_set()


async def test_whoever_waits_too_long_is_refused_and_disturbs_nobody(
    recovery: Recovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pid_of(recovery)
    os.kill(first, signal.SIGSTOP)
    monkeypatch.setattr(module, "ANSWER_DEADLINE_S", SOON_S)
    monkeypatch.setattr(module, "RECOVER_DEADLINE_S", 0.1)
    with pytest.raises(EngineBusy):
        await within(recovery.recover(a_digest(1), OFF_CURVE))
    monkeypatch.setattr(module, "RECOVER_DEADLINE_S", SOON_S)
    os.kill(first, signal.SIGCONT)
    assert await recovery.recover(*signed(2)) == ALICE
    assert pid_of(recovery) == first


async def test_processes_that_follow_each_other_do_not_let_anybody_wait_for_ever(
    recovery: Recovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import socket, sys\nline = socket.socket(fileno=int(sys.argv[1]))\nwhile line.recv(97): pass"
    monkeypatch.setattr(module, "COMMAND", (sys.executable, "-c", script))
    monkeypatch.setattr(module, "ANSWER_DEADLINE_S", 0.0)
    monkeypatch.setattr(module, "ATTEMPTS_MAX", 1_000)
    starts = FailingStarts(monkeypatch, None)
    os.kill(pid_of(recovery), signal.SIGSTOP)
    asked = [asyncio.create_task(recovery.recover(*signed(number))) for number in range(2)]
    await starts.until(2)
    monkeypatch.setattr(module, "RECOVER_DEADLINE_S", 1.0)
    answers = await within(asyncio.gather(*asked, return_exceptions=True))
    assert [type(answer) for answer in answers] == [EngineBusy, EngineBusy]


async def test_more_than_may_wait_are_refused(
    recovery: Recovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAITING_MAX", 2)
    answers = await asyncio.gather(
        *(recovery.recover(*signed(number)) for number in range(3)), return_exceptions=True
    )
    assert (answers[0], answers[1]) == (ALICE, ALICE)
    assert isinstance(answers[2], EngineBusy)


async def test_those_who_wait_when_it_closes_are_refused() -> None:
    recovery = Recovery()
    await recovery.start()
    pid = pid_of(recovery)
    os.kill(pid, signal.SIGSTOP)
    waits = asyncio.create_task(recovery.recover(*signed(1)))
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGCONT)
    await recovery.close()
    with pytest.raises(EngineRestarting):
        await waits
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_process_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STOP_DEADLINE_S", 0.05)
    recovery = Recovery()
    await recovery.start()
    pid = pid_of(recovery)
    os.kill(pid, signal.SIGSTOP)
    await recovery.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_questions_that_arrive_in_pieces_are_answered_whole() -> None:
    ours, theirs = socket.socketpair()
    questions = b"".join((b"".join(signed(1)), a_digest(2) + OFF_CURVE, b"".join(signed(3))))
    assert len(questions) == 3 * ASKED_BYTES
    with ours, theirs:
        server = threading.Thread(target=serve, args=(theirs,))
        server.start()
        arrived = b""
        for at in range(0, len(questions), 50):
            ours.sendall(questions[at : at + 50])
        while len(arrived) < 3 * ANSWER_BYTES:
            arrived += ours.recv(4096)
        ours.close()
        server.join()
    signer = b"\x01" + address_bytes(ALICE)
    assert arrived == signer + NO_SIGNER + signer
