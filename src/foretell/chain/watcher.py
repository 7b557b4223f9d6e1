"""Watch the transactions of one account until their outcome is final.

Start and recovery are one path: each pass begins with the unfinished rows. A row moves by what the
chain shows of its attempts, and is broadcast again while the chain shows nothing.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import structlog

from foretell.chain.broadcaster import Broadcaster
from foretell.chain.nonce_use import find_nonce_use
from foretell.chain.rpc_types import RawSighting, quantity_of, sighting_of
from foretell.chain.sending_account import SendingAccount
from foretell.chain.smaller_reads import BatchReader
from foretell.domain.errors.chain import ChainInconsistent, ChainUnavailable, RpcRefused
from foretell.domain.evm.transaction import (
    WAITING,
    MinedAttempt,
    SentTx,
    TxMove,
    TxTrigger,
    moved,
    next_move,
)

FILL_GAP_AFTER_S: Final = 20
UNFINISHED_MAX: Final = 500
GAP_FILLS_MAX: Final = 50
GAP_CAUSE: Final = "the node lacks nonces before the first one that waits"
GAP_CURE: Final = "none is needed: what is stored is sent again, and the others are filled"
LOOK_BLOCKS_MAX: Final = 64
"""Most blocks between two searches for the transaction that used a nonce."""

_SEEN: Any = RawSighting | str
"""The answers that are looked at: receipts without their logs, of which a batch has hundreds, and numbers."""

log = structlog.get_logger(__name__)


class _ChainView(NamedTuple):
    """The chain's head, how many nonces are used, and the attempts that are in blocks."""

    head: int
    used_nonces: int
    sighting_by_tx_id: dict[str, MinedAttempt]


class _Displaced(NamedTuple):
    """A transaction whose nonce is used: the head at which to search for the use, the pause, and where to go on."""

    look_at: int
    pause_blocks: int
    next_block: int | None = None

    def later(self, head: int, next_block: int | None) -> "_Displaced":
        """Return the next search: a part of one goes on at the next block, whole ones are ever rarer."""
        if next_block is not None:
            return _Displaced(head + 1, self.pause_blocks, next_block)
        return _Displaced(head + self.pause_blocks, min(2 * self.pause_blocks, LOOK_BLOCKS_MAX))


class Watcher:
    """The reading side of one account; it broadcasts through the account's broadcaster."""

    def __init__(self, account: SendingAccount, broadcaster: Broadcaster) -> None:
        self._account = account
        self._broadcaster = broadcaster
        self._batches = BatchReader(account.rpc)
        self._displaced_by_id: dict[str, _Displaced] = {}
        self._gap_since_ms: int | None = None

    async def run_once(self) -> int:
        """Move and rebroadcast unfinished rows, and return how many are still unfinished."""
        account = self._account
        async with account.lock:
            rows = await account.outbox.load_unfinished(account.address, UNFINISHED_MAX)
            if not rows:
                self._forget_all_but([])
                return 0
            view = await self._fetch_view(rows)
            settled = await self._settle(rows, view)
            unfinished = [row for row in settled if not row.is_finished]
            waiting = [row for row in unfinished if row.status in WAITING]
            was_in_block = {row.tx_id for row in rows if row.block_number is not None}
            broadcast = [
                await self._rebroadcast(row, view, is_unmined=row.tx_id in was_in_block)
                for row in waiting
            ]
            await self._fill_gap(waiting)
            self._forget_all_but(broadcast)
            return len(unfinished)

    async def _fetch_view(self, rows: Sequence[SentTx]) -> _ChainView:
        """Return where the attempts are.

        Whom a transaction calls may have it emit logs without number, so receipts may be too large for one answer.
        """
        hashes = [attempt.tx_hash for row in rows for attempt in row.attempts]
        head, used, *receipts = await self._batches.read(
            _SEEN,
            [
                ("eth_blockNumber", []),
                ("eth_getTransactionCount", [self._account.address, "latest"]),
                *(("eth_getTransactionReceipt", [tx_hash]) for tx_hash in hashes),
            ],
            list,
        )
        tx_ids = [row.tx_id for row in rows for _ in row.attempts]
        sightings = {}
        for tx_id, tx_hash, answer in zip(tx_ids, hashes, receipts, strict=True):
            if answer is None:
                continue
            if not isinstance(answer, RawSighting):
                raise ChainUnavailable("eth_getTransactionReceipt", "the answer has another shape")
            sightings[tx_id] = sighting_of(answer)
            if sightings[tx_id].tx_hash != tx_hash:
                raise ChainInconsistent(f"a receipt of another transaction than {tx_hash}")
        return _ChainView(
            quantity_of(head, "eth_blockNumber"),
            quantity_of(used, "eth_getTransactionCount"),
            sightings,
        )

    async def _settle(self, rows: Sequence[SentTx], view: _ChainView) -> list[SentTx]:
        """Return the transactions after every step that the view allows, all of them stored together."""
        moves = [(row, self._after(row, view)) for row in rows]
        stored = await self._account.move_all([move for move in moves if move[1] is not move[0]])
        for row in stored:
            log.info("transaction changed status", tx_id=row.tx_id, status=row.status.value)
        after_by_id = {row.tx_id: row for row in stored}
        return [after_by_id.get(row.tx_id, row) for row in rows]

    def _after(self, tx: SentTx, view: _ChainView) -> SentTx:
        """Return the transaction after every step that the view allows."""
        sighting = view.sighting_by_tx_id.get(tx.tx_id)
        confirmations = self._account.options.confirmations
        while not tx.is_finished:
            step = next_move(tx, sighting, view.head, confirmations)
            if step is None:
                break
            tx = moved(tx, step, self._account.now_ms())
        return tx

    async def _rebroadcast(self, tx: SentTx, view: _ChainView, *, is_unmined: bool) -> SentTx:
        """Return the transaction after what is due for it while it is in no block.

        Only the lowest unused nonce is bumped: those after it wait for it, whatever they pay. A
        used nonce is not broadcast again; its receipt appears, or another program used it.
        """
        if tx.tx_id in view.sighting_by_tx_id:
            return tx
        times = self._account.times
        if is_unmined:
            times.forget(tx.newest.tx_hash)
        if tx.account_nonce < view.used_nonces:
            await self._cancel_displaced(tx, view.head)
        elif tx.account_nonce == view.used_nonces and times.is_stuck(tx.newest.tx_hash):
            return await self._replace_stuck(tx)
        elif times.is_due(tx):
            times.record_rebroadcast(tx.newest.tx_hash)
            return await self._broadcaster.push(tx)
        return tx

    async def _replace_stuck(self, tx: SentTx) -> SentTx:
        """Return the transaction with higher fees, or broadcast again as it is where the node has lost it.

        No fee brings back what a node drops: it would rise to the cap, and the transaction be given up. A node
        that shows no waiting transaction looks like one that lost it, so there fees rise too, but seldom.
        """
        times = self._account.times
        if times.is_old(tx) or await self._is_at_node(tx):
            bumped = await self._broadcaster.bump(tx)
            if bumped.newest == tx.newest:
                times.record_vain_bump(tx.newest.tx_hash)
            return bumped
        log.warning("node has lost a transaction", tx_id=tx.tx_id, nonce=tx.account_nonce)
        times.forget(tx.newest.tx_hash)
        times.record_rebroadcast(tx.newest.tx_hash)
        return await self._broadcaster.push(tx)

    async def _is_at_node(self, tx: SentTx) -> bool:
        """Return whether the node has the newest attempt; one that does not say so has it."""
        try:
            rpc, tx_hash = self._account.rpc, tx.newest.tx_hash
            return await rpc.call("eth_getTransactionByHash", tx_hash) is not None
        except RpcRefused:
            return True

    async def _cancel_displaced(self, tx: SentTx, head: int) -> None:
        """Cancel a transaction when a confirmed block has used its nonce for another one.

        The owner of a canceled id may send its call again, so the other transaction must be seen in its
        block: a node may hide transactions that it has mined, for a moment or for long.
        """
        account, depth = self._account, self._account.options.confirmations
        displaced = self._displaced_by_id.setdefault(
            tx.tx_id, _Displaced(head + depth, max(depth, 1))
        )
        if head < displaced.look_at:
            return
        user, next_block = await find_nonce_use(
            account.rpc, account.address, tx.account_nonce, head - depth, displaced.next_block
        )
        if user is None or user in {attempt.tx_hash for attempt in tx.attempts}:
            log.warning("nonce used by no other visible transaction", tx_id=tx.tx_id, head=head)
            self._displaced_by_id[tx.tx_id] = displaced.later(head, next_block)
            return
        failure = f"nonce {tx.account_nonce} of the account was used by something else"
        log.error("nonce used elsewhere", tx_id=tx.tx_id, nonce=tx.account_nonce, user=user)
        await account.move(tx, TxMove(TxTrigger.CANCEL, failure=failure))

    async def _fill_gap(self, waiting: Sequence[SentTx]) -> None:
        """Fill unused nonces before the first waiting one: no block includes a nonce after a gap."""
        account = self._account
        next_nonce = await account.fetch_nonce("pending") if waiting else 0
        if not waiting or waiting[0].account_nonce <= next_nonce:
            self._gap_since_ms = None
            return
        if self._gap_since_ms is None:
            self._gap_since_ms = account.now_ms()
        if abs(account.now_ms() - self._gap_since_ms) < FILL_GAP_AFTER_S * 1000:
            return
        end = min(waiting[0].account_nonce, next_nonce + GAP_FILLS_MAX)
        account.lines.write_error("nonce gap", GAP_CAUSE, GAP_CURE, first=next_nonce, last=end - 1)
        for account_nonce in range(next_nonce, end):
            lost = await account.outbox.load_at_nonce(account.address, account_nonce)
            if lost is None:
                await self._broadcaster.fill_gap(account_nonce)
            else:
                await self._broadcaster.broadcast(lost)

    def _forget_all_but(self, waiting: Sequence[SentTx]) -> None:
        self._account.times.keep_only({row.newest.tx_hash for row in waiting})
        for tx_id in self._displaced_by_id.keys() - {row.tx_id for row in waiting}:
            del self._displaced_by_id[tx_id]
