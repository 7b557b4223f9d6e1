import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator

import pytest
from tests.build import a_key

from foretell.app import recovery as module
from foretell.app.recovering import ANSWER_BYTES, ASKED_BYTES, NO_SIGNER, serve
from foretell.app.recovery import Recovery
from foretell.domain.errors import MalformedSignature
from foretell.domain.hexadecimal import address_bytes
from foretell.domain.matching_errors import EngineBusy, EngineRestarting
from foretell.domain.typed_data import address_of_key, sign_digest

pytestmark = pytest.mark.anyio

OFF_CURVE = b"\xff" * 32 + b"\x01" * 32 + b"\x1b"
ALICE = address_of_key(a_key("alice"))


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
