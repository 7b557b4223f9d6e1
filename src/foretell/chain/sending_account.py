"""The state that the broadcaster and the watcher of one account share."""

import asyncio
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import structlog

from foretell.chain.outbox import Outbox
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of
from foretell.domain.evm.transaction import SentTx, TxMove, TxStatus, moved
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.runtime.repeated_lines import RepeatedLines

FEE_CAP_WEI: Final = 1_000_000_000_000
BUMP_AFTER_S: Final = 20
BUMP_UNSEEN_AFTER_S: Final = 120
"""The same for an attempt that the node accepted and does not show: it lost it, or it shows none that waits."""
REBROADCAST_AFTER_S: Final = 10
RETRY_AFTER_S: Final = 1
"""The first pause after which what the node refused or did not answer is repeated; each further one is twice as long."""
RETRY_AFTER_S_MAX: Final = 30
"""The longest of these pauses: a node that takes transactions again has all of them so many seconds later."""
LINES_PER_CAUSE_MAX: Final = 1
"""Lines of the log in a minute that one cause has, of all transactions of an account together."""

_NUMBERS: Final = re.compile(r"0x[0-9a-fA-F]+|\d+")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SenderOptions:
    """Options of an account; `confirmations` counts blocks on top of a transaction's own."""

    chain_id: int
    confirmations: int = 1
    fee_cap_wei: int = FEE_CAP_WEI
    has_simulated_price: bool = False
    """Whether a simulation with stated gas has the fees of a first attempt.

    Without a price a contract knows that it is simulated. With one a node refuses to simulate what the account
    cannot pay for.
    """


class _Repetition(NamedTuple):
    """When something was last repeated, and the pause until it may be again."""

    at_ms: int
    pause_s: int


class AttemptTimes:
    """Times at which this process broadcast an attempt, and at which a node first accepted it.

    What is repeated in vain is repeated after ever longer pauses: a broadcast that is not accepted, and a replacement
    whose fees would be above the cap.

    The times are kept in memory only: after a restart every waiting attempt is broadcast again,
    which changes nothing at a node that has it.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._accepted_at_ms: dict[Bytes32, int] = {}
        self._rebroadcasts: dict[Bytes32, _Repetition] = {}
        self._vain_bumps: dict[Bytes32, _Repetition] = {}

    def record_accepted(self, tx_hash: Bytes32) -> None:
        """Record that a node has the attempt; the first time counts. The next pause is the shortest.

        So it is for all if this one was repeated in vain: they may have waited for its nonce, or for the node.
        """
        self._accepted_at_ms.setdefault(tx_hash, self._now_ms())
        last = self._rebroadcasts.get(tx_hash)
        if last is None:
            return
        was_in_vain = last.pause_s > RETRY_AFTER_S
        for each in list(self._rebroadcasts) if was_in_vain else [tx_hash]:
            self._rebroadcasts[each] = self._rebroadcasts[each]._replace(pause_s=0)

    def record_rebroadcast(self, tx_hash: Bytes32) -> None:
        """Record that the watcher broadcasts the attempt now; the pause grows unless the attempt is then accepted."""
        self._repeat(self._rebroadcasts, tx_hash)

    def record_vain_bump(self, tx_hash: Bytes32) -> None:
        """Record that the attempt was to be replaced, and was not."""
        self._repeat(self._vain_bumps, tx_hash)

    def _repeat(self, repetitions: dict[Bytes32, _Repetition], tx_hash: Bytes32) -> None:
        last = repetitions.get(tx_hash)
        doubled_s = 0 if last is None else 2 * last.pause_s
        pause_s = min(max(doubled_s, RETRY_AFTER_S), RETRY_AFTER_S_MAX)
        repetitions[tx_hash] = _Repetition(self._now_ms(), pause_s)

    def is_stuck(self, tx_hash: Bytes32) -> bool:
        """Return whether a node has had the attempt for so long that its fees must be too low.

        After a replacement in vain, it is not so until a pause is over.
        """
        accepted_at_ms = self._accepted_at_ms.get(tx_hash)
        if accepted_at_ms is None or not self._is_past(accepted_at_ms, BUMP_AFTER_S):
            return False
        vain = self._vain_bumps.get(tx_hash)
        return vain is None or self._is_past(vain.at_ms, vain.pause_s)

    def is_old(self, tx: SentTx) -> bool:
        """Return whether the newest attempt is so old that its fees rise, whether or not the node has it."""
        return self._is_past(tx.newest.created_at_ms, BUMP_UNSEEN_AFTER_S)

    def is_due(self, tx: SentTx) -> bool:
        """Return whether to broadcast the newest attempt again: a node may have dropped it."""
        tx_hash, is_pending = tx.newest.tx_hash, tx.status is TxStatus.PENDING
        least_s = RETRY_AFTER_S if is_pending else REBROADCAST_AFTER_S
        if (last := self._rebroadcasts.get(tx_hash)) is not None:
            return self._is_past(last.at_ms, max(least_s, last.pause_s))
        accepted_at_ms = self._accepted_at_ms.get(tx_hash)
        return is_pending or accepted_at_ms is None or self._is_past(accepted_at_ms, least_s)

    def forget(self, tx_hash: Bytes32) -> None:
        """Drop the times of an attempt, so that it is due at once."""
        for times in self._all():
            times.pop(tx_hash, None)

    def keep_only(self, tx_hashes: Collection[Bytes32]) -> None:
        """Drop the times of all other attempts."""
        for times in self._all():
            for tx_hash in times.keys() - tx_hashes:
                del times[tx_hash]

    def _all(self) -> tuple[dict[Bytes32, Any], ...]:
        return self._accepted_at_ms, self._rebroadcasts, self._vain_bumps

    def _is_past(self, since_ms: int, seconds: int) -> bool:
        """Return whether so much time is past, or the clock was set back by more: nothing waits until it is right."""
        return abs(self._now_ms() - since_ms) >= seconds * 1000


class AccountLines:
    """Lines of the log of one account: one a minute of each cause, which says how often there was one, and the cure."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._lines = RepeatedLines(lambda: now_ms() / 1000, lines_max=LINES_PER_CAUSE_MAX)

    def write_warning(self, event: str, cause: str, cure: str, **fields: object) -> None:
        """Log what may pass by itself."""
        self._write(log.warning, event, cause, cure, fields)

    def write_error(self, event: str, cause: str, cure: str, **fields: object) -> None:
        """Log what somebody has to look at."""
        self._write(log.error, event, cause, cure, fields)

    def _write(
        self,
        write: Callable[..., object],
        event: str,
        cause: str,
        cure: str,
        fields: Mapping[str, object],
    ) -> None:
        """Write a line unless the same cause had one; numbers make no other cause, such as the coin that each row lacks."""
        line = self._lines.admit(f"{event} {_NUMBERS.sub('#', cause)}")
        if line is not None:
            write(event, cause=cause, **fields, count=1 + line.left_out, cure=cure)


@dataclass(frozen=True, slots=True)
class SendingAccount:
    """One account's node, outbox, options and clock.

    Hold `lock` while reserving a nonce or replacing an attempt.
    """

    address: Address
    rpc: Rpc
    outbox: Outbox
    options: SenderOptions
    now_ms: Callable[[], int]
    times: AttemptTimes
    lines: AccountLines
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def fetch_nonce(self, at: str) -> int:
        """Return how many nonces of the account are used, `latest` or `pending`."""
        answer = await self.rpc.call("eth_getTransactionCount", self.address, at)
        return quantity_of(answer, "eth_getTransactionCount")

    async def move_all(self, moves: Sequence[tuple[SentTx, SentTx]]) -> list[SentTx]:
        """Return transactions after steps that are stored together; those another process moved stay."""
        if not moves:
            return []
        are_moved = await self.outbox.record_moves(moves)
        return [now if moved else was for (was, now), moved in zip(moves, are_moved, strict=True)]

    async def move(self, tx: SentTx, step: TxMove) -> SentTx | None:
        """Return the transaction after a stored step, or None when another process moved it."""
        after = moved(tx, step, self.now_ms())
        return after if await self.outbox.record_move(tx, after) else None
