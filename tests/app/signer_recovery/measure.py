"""Print the processor time of a recovery in the loop and in the process, in microseconds.

Run it as `python tests/app/signer_recovery/measure.py [in flight] [rounds]`. It is processor time of the
thread and of the process, which other programs disturb less than the clock; the unit, one
`recover_signer`, is measured in the same round.
"""

import asyncio
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

import uvloop

from foretell.app.signer_recovery.client import SignerRecovery
from foretell.domain.values.eip712 import address_of_key, recover_signer, sign_digest
from foretell.domain.values.hexadecimal import keccak256
from foretell.domain.values.signer_recovery import ANSWER_BYTES, signer_of

KEYS = 20
REQUESTS = 4_000
UNIT = 400


class Cost(NamedTuple):
    """Microseconds a request: in the loop's thread, in the process, on the clock; and of the unit."""

    loop: float
    process: float
    clock: float
    unit: float


def signed(count: int) -> list[tuple[bytes, bytes]]:
    keys = [keccak256(b"key %d" % number) for number in range(KEYS)]
    digests = [keccak256(b"order %d" % number) for number in range(count)]
    return [
        (digest, sign_digest(digest, keys[number % KEYS])) for number, digest in enumerate(digests)
    ]


def unit_us(requests: list[tuple[bytes, bytes]]) -> float:
    """Return the cost of one `recover_signer`."""
    started = time.thread_time()
    for digest, signature in requests[:UNIT]:
        recover_signer(digest, signature)
    return (time.thread_time() - started) / UNIT * 1e6


def process_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


async def await_each(
    recovery: SignerRecovery, requests: list[tuple[bytes, bytes]], in_flight: int
) -> None:
    left = iter(requests)

    async def work() -> None:
        for request in left:
            await recovery.recover(*request)

    await asyncio.gather(*(work() for _ in range(in_flight)))


async def submit_each(
    recovery: SignerRecovery, requests: list[tuple[bytes, bytes]], in_flight: int
) -> None:
    left = [digest + signature for digest, signature in reversed(requests)]
    answered = bytearray()
    done = asyncio.Event()

    def on_recovered(answers: bytes) -> None:
        answered.extend(answers)
        for _ in range(min(len(answers) // ANSWER_BYTES, len(left))):
            submit(left.pop())
        if len(answered) == len(requests) * ANSWER_BYTES:
            done.set()

    submit = recovery.open_queue(on_recovered).submit
    for _ in range(in_flight):
        submit(left.pop())
    await done.wait()
    assert signer_of(bytes(answered[-ANSWER_BYTES:])) == address_of_key(
        keccak256(b"key %d" % ((len(requests) - 1) % KEYS))
    )


async def measure(in_flight: int, rounds: int) -> None:
    recovery = SignerRecovery()
    await recovery.start()
    running = asyncio.create_task(recovery.run())
    requests = signed(REQUESTS)
    pid = recovery.process_id
    assert pid is not None
    for drive in (await_each, submit_each):
        costs = []
        await drive(recovery, requests[:200], in_flight)
        for _ in range(rounds):
            loop, process, clock = time.thread_time(), process_s(pid), time.perf_counter()
            await drive(recovery, requests, in_flight)
            costs.append(
                Cost(
                    (time.thread_time() - loop) / REQUESTS * 1e6,
                    (process_s(pid) - process) / REQUESTS * 1e6,
                    (time.perf_counter() - clock) / REQUESTS * 1e6,
                    unit_us(requests),
                )
            )
        medians = [f"{statistics.median(column):.1f}" for column in zip(*costs, strict=True)]
        words = " ".join(map(" ".join, zip(Cost._fields, medians, strict=True)))
        sys.stdout.write(f"{drive.__name__} with {in_flight} in flight: {words}\n")
    running.cancel()
    await recovery.close()


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    uvloop.run(measure(*(arguments + [32, 5][len(arguments) :])))
