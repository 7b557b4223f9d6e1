"""Who signed an order: the dearest step of all, done beside the event loop.

One recovery costs as much as everything else that is done for an order, and gives way to other
threads while it runs. Orders that arrive while all threads are busy are taken together by the next
one that is free, so that the more there is to do, the less is spent on handing it over.
"""

import asyncio
import contextlib
import queue
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from foretell.domain.hexadecimal import Address, Bytes32
from foretell.domain.matching_errors import EngineBusy
from foretell.domain.order import SignedOrder
from foretell.domain.profiles import Separators, SigningProfile, identify, separators

THREADS: Final = 2
ORDERS_PER_TURN_MAX: Final = 8
ORDERS_WAITING_MAX: Final = 10_000
SIGNERS_KEPT_MAX: Final = 20_000


class Identity(NamedTuple):
    """Under which profile an order was signed, and the id that it has by that."""

    profile: int
    order_id: Bytes32


class _Job(NamedTuple):
    order: SignedOrder
    separators: Separators
    first: int
    answer: asyncio.Future[Identity]


class _Turn(NamedTuple):
    jobs: Sequence[_Job]
    loop: asyncio.AbstractEventLoop


class Signers:
    """Recovers signers; remembers which profile each used last."""

    def __init__(
        self,
        profiles_of: Callable[[Address], Sequence[SigningProfile]],
        chain_id: int,
        *,
        threads: int = THREADS,
        waiting_max: int = ORDERS_WAITING_MAX,
        kept_max: int = SIGNERS_KEPT_MAX,
    ) -> None:
        self.profiles_of = profiles_of
        self._waiting_max = waiting_max
        self._kept_max = kept_max
        self._threads_max = threads
        self._chain_id = chain_id
        self._separators_by_exchange: dict[Address, Separators] = {}
        self._profile_by_signer: OrderedDict[Address, int] = OrderedDict()
        self._threads: list[threading.Thread] = []
        self._threads_free = threads
        self._turns: queue.SimpleQueue[_Turn | None] = queue.SimpleQueue()
        self._waiting: deque[_Job] = deque()

    def separators(self, exchange: Address) -> Separators:
        """Return the domains that orders for an exchange may be signed for."""
        known = self._separators_by_exchange.get(exchange)
        if known is None:
            known = separators(self.profiles_of(exchange), self._chain_id, exchange)
            self._separators_by_exchange[exchange] = known
        return known

    async def identify(self, order: SignedOrder, exchange: Address) -> Identity:
        """Return what the signature makes of the order, or refuse one that is not its signer's."""
        if len(self._waiting) >= self._waiting_max:
            raise EngineBusy
        first = self._profile_by_signer.get(order.signer, 0)
        answer: asyncio.Future[Identity] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Job(order, self.separators(exchange), first, answer))
        self._hand_over()
        identity = await answer
        self._remember(order.signer, identity.profile)
        return identity

    def close(self) -> None:
        """Let the threads go."""
        for _ in self._threads:
            self._turns.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _remember(self, signer: Address, profile: int) -> None:
        self._profile_by_signer[signer] = profile
        if len(self._profile_by_signer) > self._kept_max:
            self._profile_by_signer.popitem(last=False)

    def _hand_over(self) -> None:
        """Give what waits to a thread that is free, if there is one."""
        while self._waiting and self._threads_free:
            count = min(len(self._waiting), ORDERS_PER_TURN_MAX)
            jobs = [self._waiting.popleft() for _ in range(count)]
            self._threads_free -= 1
            if len(self._threads) < self._threads_max:
                self._begin_thread()
            self._turns.put(_Turn(jobs, asyncio.get_running_loop()))

    def _begin_thread(self) -> None:
        name = f"signers {len(self._threads) + 1}"
        thread = threading.Thread(target=self._take_turns, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _take_turns(self) -> None:
        """Recover, in a thread of its own, until there is to be no other turn."""
        while (turn := self._turns.get()) is not None:
            outcomes = _identify_all(turn.jobs)
            with contextlib.suppress(RuntimeError):  # the loop ended: nobody waits any more
                turn.loop.call_soon_threadsafe(self._take_back, turn.jobs, outcomes)

    def _take_back(self, jobs: Sequence[_Job], outcomes: Sequence[Identity | Exception]) -> None:
        self._threads_free += 1
        for job, outcome in zip(jobs, outcomes, strict=True):
            if job.answer.done():
                continue
            if isinstance(outcome, Exception):
                job.answer.set_exception(outcome)
            else:
                job.answer.set_result(outcome)
        self._hand_over()


def _identify_all(jobs: Sequence[_Job]) -> list[Identity | Exception]:
    outcomes: list[Identity | Exception] = []
    for job in jobs:
        try:
            outcomes.append(Identity(*identify(job.order, job.separators, job.first)))
        except Exception as fault:  # noqa: BLE001 - a refusal or a fault, told to the one who waits
            outcomes.append(fault)
    return outcomes
