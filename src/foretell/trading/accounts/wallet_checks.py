"""Checks that the contract wallet of an order still lets its signer trade.

The signer was recovered before. The chain is asked, at a stated block, whether that one signature is enough
for the signer's Safe (type 2), and whether a wallet that judges signatures itself (type 3) accepts this one,
with the gas that the exchange would give it.

The answer is kept under the wallet's code and owners. It is dropped once a log shows that they changed,
when the chain replaced the block that was watched to, and after a while: soon for code of which nothing is
known, since no log need show what that does. An order of any other kind costs nothing here.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from foretell.domain.contracts.wallet_state import (
    BlockMark,
    WalletChanges,
    WalletState,
)
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.families import Upstream
from foretell.domain.errors.order import NotWalletOwner, WalletRefuses
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.values.hexadecimal import Address, Bytes32, word_bytes
from foretell.runtime.lru import LruCache
from foretell.runtime.worker import PollIntervals, run_watching_worker
from foretell.store.database import Database
from foretell.store.public_reads.places import client_name

WALLETS_KEPT_MAX: Final = 20_000
KEPT_MS: Final = 60_000
"""How long an answer is kept when no log shows what changes it, or the logs cannot be read."""
KEPT_MS_MAX: Final = 10 * 60_000
"""How long an answer is kept at most: a Safe can also change its storage by code that logs nothing."""
KEPT_WITHOUT_NODE_MS_MAX: Final = 60 * 60_000
"""How old an answer for known code may be that counts while the node is unavailable."""
CHAIN_TOPIC: Final = "chain"
PACE: Final = PollIntervals(busy_s=1.0, idle_s=1.0)
WATCHED_PER_ANSWER_MAX: Final = 2
WATCHED_SPARE: Final = 16
"""Above so many contracts for each answer, and these, those of answers that are gone are removed."""
ANSWER_DEADLINE_S: Final = 5.0

_CHECKED: Final = (SignatureType.SAFE, SignatureType.CONTRACT)


class WalletChain(Protocol):
    """The chain's answers on contract wallets: how many are asked for at once, and whose, is its matter."""

    async def read(self, wallet: Address) -> WalletState:
        """Return a wallet at the newest block."""
        ...

    async def accepts(
        self, state: WalletState, wallet: Address, digest: bytes, signature: bytes
    ) -> bool:
        """Return whether a wallet accepts a signature over a digest (ERC-1271), at the block of its state."""
        ...

    async def changes(self, since: BlockMark, watched: Collection[Address]) -> WalletChanges:
        """Return which of these contracts logged a change after a block."""
        ...


@dataclass(frozen=True, slots=True)
class _Answer:
    """A wallet that let its signer trade: when, at which block, and what that depends on."""

    at_ms: int
    block: BlockMark
    key: bytes
    watched: tuple[Address, ...]
    shows_changes: bool


class WalletChecks:
    """The wallets that let their signers trade lately, at most `kept_max`, a few hundred bytes each."""

    def __init__(
        self,
        chain: WalletChain,
        now_ms: Callable[[], int],
        *,
        kept_max: int = WALLETS_KEPT_MAX,
    ) -> None:
        self._chain = chain
        self._now_ms = now_ms
        self._answers: LruCache[Address, _Answer] = LruCache(kept_max)
        self._watched: set[Address] = set()
        """The contracts that answers depend on, and some that none depends on any more."""
        self._kept_meanwhile: set[Address] | None = None
        """The wallets whose answers were kept since the reading of logs began that is under way."""
        self._watched_to: BlockMark | None = None
        self._watched_at_ms: int | None = None
        self._reading: dict[tuple[str, Address], asyncio.Task[WalletState]] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def pending(self, order: SignedOrder, order_id: Bytes32) -> Coroutine[Any, Any, None] | None:
        """Return the check of an order that the chain must be asked for, None when it need not be."""
        if order.signature_type not in _CHECKED or self._is_known(order.maker):
            return None
        return self._check(order, word_bytes(order_id))

    def _is_known(self, wallet: Address) -> bool:
        answer = self._answers.get(wallet)
        if answer is None:
            return False
        now_ms, watched_at_ms = self._now_ms(), self._watched_at_ms
        age_ms = now_ms - answer.at_ms
        if age_ms < KEPT_MS:
            return True
        is_watched = watched_at_ms is not None and now_ms - watched_at_ms < KEPT_MS
        return answer.shows_changes and is_watched and age_ms < KEPT_MS_MAX

    async def _check(self, order: SignedOrder, digest: bytes) -> None:
        """Refuse an order that its wallet does not let its signer place.

        Raises ChainUnavailable when the chain does not answer, unless it answered for known code lately.
        """
        wallet = order.maker
        try:
            async with asyncio.timeout(ANSWER_DEADLINE_S):
                state = await self._read(wallet)
                await self._judge(state, order, digest)
        except (TimeoutError, ChainUnavailable) as error:
            if self._counts_without_node(wallet):
                return
            if isinstance(error, ChainUnavailable):
                raise
            raise ChainUnavailable("the state of a wallet", "no answer in time") from error
        except (NotWalletOwner, WalletRefuses):
            self._answers.discard(wallet)
            raise
        self._keep(wallet, state)

    def _counts_without_node(self, wallet: Address) -> bool:
        """Return whether a former answer for a wallet counts while the node is unavailable."""
        before = self._answers.get(wallet)
        if before is None or not before.shows_changes:
            return False
        return self._now_ms() - before.at_ms < KEPT_WITHOUT_NODE_MS_MAX

    async def _judge(self, state: WalletState, order: SignedOrder, digest: bytes) -> None:
        """Refuse an order by the state of its wallet, or by its answer.

        Known code with the same owners as before answers as it did before.
        """
        if order.signature_type is SignatureType.SAFE:
            if state.has_code and not state.is_owned_by(order.signer):
                raise NotWalletOwner(order.signer, order.maker)
            return
        before = self._answers.get(order.maker)
        if before is not None and state.shows_changes and before.key == state.key.digest():
            return
        is_accepted = await self._chain.accepts(state, order.maker, digest, order.signature)
        if not is_accepted:
            raise WalletRefuses(order.maker)

    async def _read(self, wallet: Address) -> WalletState:
        """Return the state of a wallet; orders of a client that ask at the same time share one reading.

        Another client's reading waits for the turns of that client, which may have asked for many wallets.
        """
        name = client_name.get(), wallet
        reading = self._reading.get(name)
        if reading is None:
            reading = asyncio.get_running_loop().create_task(self._fetch(wallet))
            self._reading[name] = reading
            reading.add_done_callback(partial(self._end_reading, name))
        return await asyncio.shield(reading)

    def _end_reading(self, name: tuple[str, Address], reading: asyncio.Task[WalletState]) -> None:
        del self._reading[name]
        if not reading.cancelled():
            reading.exception()  # the orders that wait have it, unless all of them gave up

    async def _fetch(self, wallet: Address) -> WalletState:
        async with asyncio.timeout(ANSWER_DEADLINE_S):
            return await self._chain.read(wallet)

    def _keep(self, wallet: Address, state: WalletState) -> None:
        """Keep an answer, unless the logs of later blocks were read without this wallet."""
        watched_to = self._watched_to
        if watched_to is not None and state.block.block_number < watched_to.block_number:
            self._answers.discard(wallet)
            return
        answer = _Answer(
            at_ms=self._now_ms(),
            block=state.block,
            key=state.key.digest(),
            watched=state.watched,
            shows_changes=state.shows_changes,
        )
        self._answers.put(wallet, answer)
        self._watched.update(answer.watched)
        if self._kept_meanwhile is not None:
            self._kept_meanwhile.add(wallet)

    async def follow(self, database: Database) -> None:
        """Watch until canceled: after each block that is indexed, and at least once a second."""
        set_up = partial(database.watching, CHAIN_TOPIC)
        await run_watching_worker("wallets", self._step, PACE, set_up, expected=(Upstream,))

    async def _step(self) -> bool:
        await self.watch()
        return False

    async def watch(self) -> None:
        """Read the logs of the blocks since the last time, and drop the answers that they make doubtful."""
        began_ms, answers = self._now_ms(), self._answers
        if not len(answers):
            self._watched_to = None
            return
        since = self._watched_to or min(answer.block for answer in answers.values())
        if len(self._watched) > WATCHED_PER_ANSWER_MAX * len(answers) + WATCHED_SPARE:
            self._watched = {each for answer in answers.values() for each in answer.watched}
        meanwhile = self._kept_meanwhile = set()
        try:
            found = await self._chain.changes(since, self._watched)
        finally:
            self._kept_meanwhile = None
        if found.changed is None:
            answers.clear()
        else:
            self._drop(found.changed, meanwhile, found.upto)
        self._watched_to, self._watched_at_ms = found.upto, began_ms

    def _drop(
        self, changed: frozenset[Address], meanwhile: Collection[Address], upto: BlockMark
    ) -> None:
        """Drop the answers that depend on changed contracts, and those that were kept meanwhile.

        The latter are of blocks whose logs were not asked for with them.
        """
        doubtful = {
            wallet
            for wallet in meanwhile
            if (answer := self._answers.get(wallet)) is not None
            and answer.block.block_number < upto.block_number
        }
        if changed:
            doubtful |= {
                wallet
                for wallet, answer in self._answers.items()
                if not changed.isdisjoint(answer.watched)
            }
        for wallet in doubtful:
            self._answers.discard(wallet)
