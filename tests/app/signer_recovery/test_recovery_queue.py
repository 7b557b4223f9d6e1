"""Queues of requests for signers, over a real process."""

import asyncio
import contextlib
import os
import select
import signal
import sys
from collections.abc import AsyncIterator, Collection
from typing import Any, Final

import pytest
from tests.rigs.values import a_key

from foretell.app.signer_recovery.client import SignerRecovery
from foretell.app.signer_recovery.process import PIECE_MAX
from foretell.app.signer_recovery.recovery_queue import RecoveryQueue
from foretell.app.signer_recovery.waiting_requests import RecoveryLimits
from foretell.domain.errors.exchange import EngineBusy, EngineRestarting
from foretell.domain.values.eip712 import address_of_key, sign_digest
from foretell.domain.values.hexadecimal import address_bytes
from foretell.domain.values.signer_recovery import (
    ANSWER_BYTES,
    CLOSED,
    LATE,
    NO_SIGNER,
    RECOVERED,
    answer_without_signer,
)
from foretell.runtime.child_processes import RestartBackoff

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize(
        "anyio_backend",
        [("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True})],
        ids=["asyncio", "uvloop"],
    ),
]

SOON_S = 120.0
SHORT_S: Final = 0.1
QUICK = RecoveryLimits(
    check_every_s=0.05,
    answer_deadline_s=SOON_S,
    recover_deadline_s=SOON_S,
    attempts_max=1_000,
    restarts=RestartBackoff(first_s=0.01, most_s=0.01),
)
KEYS: Final = [a_key(f"signer {number}") for number in range(7)]
SIGNED: Final = [
    (number + 1).to_bytes(32, "big") + sign_digest((number + 1).to_bytes(32, "big"), key)
    for number, key in enumerate(KEYS)
]
SIGNERS: Final = [bytes([RECOVERED]) + address_bytes(address_of_key(key)) for key in KEYS]
WITHOUT_SIGNER: Final = answer_without_signer(NO_SIGNER)
CYCLE: Final = [*SIGNED, SIGNED[0][:32] + b"\xff" * 32 + b"\x01" * 32 + b"\x1b"]
"""Requests of eight kinds: an answer that is lost, doubled or out of its turn is seen."""
CYCLE_ANSWERS: Final = b"".join([*SIGNERS, WITHOUT_SIGNER])


class Receiver:
    """A queue and the answers that it has given."""

    def __init__(self, recovery: SignerRecovery) -> None:
        self.answers = b""
        self._wanted = 0
        self._has_all = asyncio.Event()
        self.queue: RecoveryQueue = recovery.open_queue(self.on_recovered)
        self.submitted = 0

    def submit(self, count: int) -> None:
        for _ in range(count):
            self.queue.submit(CYCLE[self.submitted % len(CYCLE)])
            self.submitted += 1

    def on_recovered(self, answers: bytes) -> None:
        assert len(answers) % ANSWER_BYTES == 0
        self.answers += answers
        if len(self.answers) >= self._wanted * ANSWER_BYTES:
            self._has_all.set()

    @property
    def count(self) -> int:
        return len(self.answers) // ANSWER_BYTES

    async def until(self, count: int) -> None:
        """Return when so many requests are answered."""
        if self.count < count:
            self._wanted = count
            self._has_all.clear()
            await asyncio.wait_for(self._has_all.wait(), SOON_S)

    async def check_all(self) -> None:
        """Check that every request has its answer, once and in its turn, and that none comes later."""
        await self.until(self.submitted)
        await asyncio.sleep(0.01)
        cycles = self.submitted // len(CYCLE) + 1
        assert self.answers == (CYCLE_ANSWERS * cycles)[: self.submitted * ANSWER_BYTES]


@pytest.fixture
async def recovery() -> AsyncIterator[SignerRecovery]:
    recovery = SignerRecovery(QUICK)
    await recovery.start()
    running = asyncio.create_task(recovery.run())
    yield recovery
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await recovery.close()


@pytest.fixture
def receiver(recovery: SignerRecovery) -> Receiver:
    return Receiver(recovery)


def limit(recovery: SignerRecovery, **changed: float) -> None:
    recovery.limits = recovery.limits._replace(**changed)  # type: ignore[arg-type]


def pid_of(recovery: SignerRecovery) -> int:
    assert recovery.process_id is not None
    return recovery.process_id


async def next_pid(recovery: SignerRecovery, ended: Collection[int]) -> int:
    """Return the id of a process that is none of those that ended, once there is one."""
    async with asyncio.timeout(SOON_S):
        while recovery.process_id is None or recovery.process_id in ended:  # noqa: ASYNC110 - publishes no event
            await asyncio.sleep(0.005)
    return pid_of(recovery)


def stop(recovery: SignerRecovery) -> None:
    os.kill(pid_of(recovery), signal.SIGSTOP)


def go_on(recovery: SignerRecovery) -> None:
    os.kill(pid_of(recovery), signal.SIGCONT)


@pytest.mark.parametrize("count", [1, 2, PIECE_MAX - 1, PIECE_MAX, PIECE_MAX + 1, 1_000])
async def test_requests_of_a_turn_are_answered_in_their_order(
    receiver: Receiver, count: int
) -> None:
    receiver.submit(count)
    await receiver.check_all()


async def test_requests_of_many_turns_are_answered_in_their_order(receiver: Receiver) -> None:
    for turn in range(200):
        receiver.submit(turn % 11)
        await asyncio.sleep(0)
    await receiver.check_all()


async def test_each_queue_gets_its_own_answers(recovery: SignerRecovery) -> None:
    receivers = [Receiver(recovery) for _ in range(3)]
    for turn in range(100):
        for number, receiver in enumerate(receivers):
            receiver.submit((turn + number) % 5)
        await asyncio.sleep(0)
    for receiver in receivers:
        await receiver.check_all()


async def test_an_answer_may_cause_the_next_request(recovery: SignerRecovery) -> None:
    answered = bytearray()
    done = asyncio.Event()

    def on_recovered(answers: bytes) -> None:
        answered.extend(answers)
        if len(answered) < 50 * ANSWER_BYTES:
            queue.submit(SIGNED[0])
        else:
            done.set()

    queue = recovery.open_queue(on_recovered)
    queue.submit(SIGNED[0])
    queue.submit(SIGNED[0])
    await asyncio.wait_for(done.wait(), SOON_S)
    assert bytes(answered[: 50 * ANSWER_BYTES]) == SIGNERS[0] * 50


async def test_a_request_that_is_alone_needs_no_process(
    recovery: SignerRecovery, receiver: Receiver
) -> None:
    stop(recovery)
    for _ in range(2 * len(CYCLE)):
        receiver.submit(1)
        await receiver.until(receiver.submitted)
    go_on(recovery)
    await receiver.check_all()


async def test_a_request_that_is_alone_is_not_answered_while_it_is_submitted(
    receiver: Receiver,
) -> None:
    """The caller's turn goes on first, and may submit more."""
    receiver.submit(1)
    assert receiver.count == 0
    await receiver.check_all()


async def test_two_requests_of_a_turn_go_to_the_process(
    recovery: SignerRecovery, receiver: Receiver
) -> None:
    stop(recovery)
    receiver.submit(2)
    await asyncio.sleep(SHORT_S)
    assert receiver.count == 0
    go_on(recovery)
    await receiver.check_all()


async def test_a_request_after_one_without_an_answer_goes_to_the_process(
    recovery: SignerRecovery, receiver: Receiver
) -> None:
    stop(recovery)
    receiver.submit(2)
    await asyncio.sleep(0.01)
    for _ in range(3):
        receiver.submit(1)
        await asyncio.sleep(0.01)
    assert receiver.count == 0
    go_on(recovery)
    await receiver.check_all()


async def test_single_requests_of_two_queues_in_a_turn_go_to_the_process(
    recovery: SignerRecovery,
) -> None:
    receivers = [Receiver(recovery) for _ in range(2)]
    stop(recovery)
    for receiver in receivers:
        receiver.submit(1)
    await asyncio.sleep(SHORT_S)
    assert [receiver.count for receiver in receivers] == [0, 0]
    go_on(recovery)
    for receiver in receivers:
        await receiver.check_all()


async def test_a_full_piece_is_answered_while_the_turn_goes_on(
    recovery: SignerRecovery, receiver: Receiver
) -> None:
    receiver.submit(PIECE_MAX)
    connection = recovery._waiting._connection
    assert connection is not None
    readable, _, _ = select.select([connection._socket], [], [], SOON_S)  # the loop stands still
    assert readable
    await receiver.check_all()


async def test_more_requests_than_the_socket_takes_are_sent_as_it_empties(
    recovery: SignerRecovery, receiver: Receiver
) -> None:
    stop(recovery)
    receiver.submit(9_001)
    await asyncio.sleep(0.01)
    connection = recovery._waiting._connection
    assert connection is not None
    assert len(connection._unsent) > 0
    go_on(recovery)
    await receiver.check_all()
    assert len(connection._unsent) == 0


async def test_no_answer_is_lost_or_doubled_when_processes_are_killed_under_load(
    recovery: SignerRecovery,
) -> None:
    receivers = [Receiver(recovery) for _ in range(2)]
    killed: set[int] = set()
    for turn in range(600):
        for receiver in receivers:
            receiver.submit(turn % 7)
        if turn % 60 == 30:
            pid = await next_pid(recovery, killed)
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
        await asyncio.sleep(0.002)
    for receiver in receivers:
        await receiver.check_all()
    assert len(killed) == 10


@contextlib.asynccontextmanager
async def recovery_that_begins_with(script: str) -> AsyncIterator[SignerRecovery]:
    """Run a recovery whose first process is a script, which gets the number of its socket."""
    commands = [(sys.executable, "-c", script)]

    async def spawn(*command: str, **options: Any) -> asyncio.subprocess.Process:
        start = commands.pop() if commands else command[:-1]
        return await asyncio.create_subprocess_exec(*start, command[-1], **options)

    recovery = SignerRecovery(QUICK, spawn=spawn)
    await recovery.start()
    running = asyncio.create_task(recovery.run())
    yield recovery
    running.cancel()
    await recovery.close()


async def test_a_process_that_ends_amid_a_piece_is_followed_by_one_that_answers_the_rest() -> None:
    """The answers that were given are not given again, whatever part of one has come with them."""
    begun = CYCLE_ANSWERS[: 3 * ANSWER_BYTES + 5]
    script = (
        "import os, sys\n"
        "connection = int(sys.argv[1])\n"
        "os.read(connection, 1)\n"
        f"os.write(connection, bytes.fromhex('{begun.hex()}'))\n"
    )
    async with recovery_that_begins_with(script) as recovery:
        first = pid_of(recovery)
        receiver = Receiver(recovery)
        receiver.submit(PIECE_MAX + 3)
        await receiver.check_all()
        assert pid_of(recovery) != first


async def test_answers_that_arrive_in_parts_are_passed_on_whole() -> None:
    script = (
        "import os, sys, time\n"
        "connection = int(sys.argv[1])\n"
        "os.read(connection, 1)\n"
        f"answers = bytes.fromhex('{CYCLE_ANSWERS.hex()}')\n"
        "for at in range(0, len(answers), 50):\n"
        "    os.write(connection, answers[at : at + 50])\n"
        "    time.sleep(0.02)\n"
        "time.sleep(60)\n"
    )
    async with recovery_that_begins_with(script) as recovery:
        receiver = Receiver(recovery)
        receiver.submit(len(CYCLE))
        await receiver.check_all()


async def test_a_request_is_refused_when_too_many_wait(
    recovery: SignerRecovery, receiver: Receiver
) -> None:
    limit(recovery, waiting_max=10)
    stop(recovery)
    receiver.submit(10)
    other = Receiver(recovery)
    for each in (receiver, other):
        with pytest.raises(EngineBusy):
            each.submit(1)
    go_on(recovery)
    await receiver.check_all()
    other.submit(10)
    await other.check_all()


async def test_late_requests_are_refused_once_and_in_their_order(
    recovery: SignerRecovery, receiver: Receiver
) -> None:
    stop(recovery)
    receiver.submit(len(CYCLE) * 2)
    limit(recovery, recover_deadline_s=SHORT_S)
    await receiver.until(len(CYCLE) * 2)
    assert receiver.answers == answer_without_signer(LATE) * (len(CYCLE) * 2)
    limit(recovery, recover_deadline_s=SOON_S)
    receiver.submit(3)
    go_on(recovery)
    await receiver.until(receiver.submitted)
    await asyncio.sleep(SHORT_S)
    assert receiver.answers[-3 * ANSWER_BYTES :] == CYCLE_ANSWERS[: 3 * ANSWER_BYTES]
    assert receiver.count == receiver.submitted


async def test_late_requests_are_forgotten_with_the_process(
    recovery: SignerRecovery, receiver: Receiver
) -> None:
    limit(recovery, waiting_max=10)
    stop(recovery)
    receiver.submit(10)
    limit(recovery, recover_deadline_s=SHORT_S)
    await receiver.until(10)
    with pytest.raises(EngineBusy):
        receiver.submit(1)
    limit(recovery, recover_deadline_s=SOON_S)
    os.kill(first := pid_of(recovery), signal.SIGKILL)
    await next_pid(recovery, {first})
    again = Receiver(recovery)
    again.submit(10)
    await again.check_all()


async def test_requests_that_wait_when_it_closes_are_refused() -> None:
    recovery = SignerRecovery(QUICK)
    await recovery.start()
    receiver = Receiver(recovery)
    stop(recovery)
    receiver.submit(PIECE_MAX + 3)  # a piece that is sent, and requests that are not
    os.kill(pid_of(recovery), signal.SIGCONT)
    await recovery.close()
    await receiver.until(PIECE_MAX + 3)
    assert receiver.answers == answer_without_signer(CLOSED) * (PIECE_MAX + 3)
    with pytest.raises(EngineRestarting):
        receiver.submit(1)


@pytest.fixture
async def failures() -> AsyncIterator[list[dict[str, Any]]]:
    """Return what the event loop reports of callbacks that failed."""
    loop, failures = asyncio.get_running_loop(), list[dict[str, Any]]()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: failures.append(context))
    yield failures
    loop.set_exception_handler(before)


async def test_a_receiver_that_fails_costs_no_other_its_answers(
    recovery: SignerRecovery, failures: list[dict[str, Any]]
) -> None:
    def fail(_answers: bytes) -> None:
        raise ValueError("a bug of the receiver")

    receivers = [Receiver(recovery) for _ in range(2)]
    receivers[0].submit(PIECE_MAX)
    failing = recovery.open_queue(fail)
    for _ in range(PIECE_MAX):
        failing.submit(SIGNED[0])
    receivers[1].submit(PIECE_MAX)
    for receiver in receivers:
        await receiver.check_all()
    assert len(failures) == 1


async def test_a_request_of_another_length_is_not_queued(receiver: Receiver) -> None:
    with pytest.raises(AssertionError):
        receiver.queue.submit(SIGNED[0][:-1])
