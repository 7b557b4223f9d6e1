"""Who signed an order: the dearest step of all, done beside the event loop.

One recovery costs as much as everything else that is done for an order, and gives way to other
threads while it runs. Orders that arrive while all threads are busy are taken together by the next
one that is free, so that the more there is to do, the less is spent on handing it over.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, NamedTuple

from foretell.domain.errors import ForetellError
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


class Signers:
    """Recovers signers; remembers which profile each used last."""

    def __init__(
        self,
        profiles: Sequence[SigningProfile],
        chain_id: int,
        *,
        threads: int = THREADS,
        waiting_max: int = ORDERS_WAITING_MAX,
        kept_max: int = SIGNERS_KEPT_MAX,
    ) -> None:
        self.profiles = tuple(profiles)
        self._waiting_max = waiting_max
        self._kept_max = kept_max
        self._chain_id = chain_id
        self._separators_by_exchange: dict[Address, Separators] = {}
        self._profile_by_signer: OrderedDict[Address, int] = OrderedDict()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="signers")
        self._threads_free = threads
        self._waiting: deque[_Job] = deque()

    def separators(self, exchange: Address) -> Separators:
        """Return the domains that orders for an exchange may be signed for."""
        known = self._separators_by_exchange.get(exchange)
        if known is None:
            known = separators(self.profiles, self._chain_id, exchange)
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
        self._pool.shutdown(wait=True, cancel_futures=True)

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
            turn = asyncio.get_running_loop().run_in_executor(self._pool, _identify_all, jobs)
            turn.add_done_callback(partial(self._take_back, jobs))

    def _take_back(
        self, jobs: Sequence[_Job], turn: asyncio.Future[list[Identity | Exception]]
    ) -> None:
        self._threads_free += 1
        failure = turn.exception()
        outcomes = turn.result() if failure is None else [failure] * len(jobs)
        for job, outcome in zip(jobs, outcomes, strict=True):
            if job.answer.done():
                continue
            if isinstance(outcome, BaseException):
                job.answer.set_exception(outcome)
            else:
                job.answer.set_result(outcome)
        self._hand_over()


def _identify_all(jobs: Sequence[_Job]) -> list[Identity | Exception]:
    outcomes: list[Identity | Exception] = []
    for job in jobs:
        try:
            outcomes.append(Identity(*identify(job.order, job.separators, job.first)))
        except ForetellError as refusal:
            outcomes.append(refusal)
    return outcomes
