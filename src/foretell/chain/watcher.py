"""Watches what one account has sent until its outcome is final.

Start and recovery are one path: every look begins with the unfinished rows. A row is moved by what
the chain shows of its attempts, and pushed again while the chain shows nothing.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import structlog

from foretell.chain.broadcaster import Broadcaster
from foretell.chain.rpc_types import chain_tx_of, quantity_of, receipt_of
from foretell.domain.evm.transaction import (
    WAITING,
    SentTx,
    Sighting,
    TxMove,
    TxStatus,
    TxTrigger,
    next_move,
)
from foretell.domain.values.hexadecimal import Bytes32

BUMP_AFTER_S: Final = 20
REBROADCAST_AFTER_S: Final = 10
RETRY_AFTER_S: Final = 1
FILL_GAP_AFTER_S: Final = 20
UNFINISHED_MAX: Final = 500
GAP_FILLS_MAX: Final = 50

_log: Final = structlog.get_logger(__name__)


class _View(NamedTuple):
    """What the chain shows: its head, how many nonces are used, and the attempts in blocks."""

    head: int
    used_nonces: int
    sighting_by_tx_id: dict[str, Sighting]


class Watcher:
    """The eyes of one account."""

    def __init__(self, broadcaster: Broadcaster) -> None:
        self._hand = broadcaster
        self._pushed_at_ms: dict[Bytes32, int] = {}
        self._displaced_at: dict[str, int] = {}
        self._gap_since_ms: int | None = None

    async def run_once(self) -> int:
        """Move and push what is unfinished, and return how many rows still are."""
        hand = self._hand
        async with hand.lock:
            rows = await hand.outbox.load_unfinished(hand.address, UNFINISHED_MAX)
            if not rows:
                self._forget([])
                return 0
            view = await self._view(rows)
            seen = [await self._settle(row, view) for row in rows]
            unfinished = [row for row in seen if not row.is_finished]
            waiting = [row for row in unfinished if row.status in WAITING]
            was_in_block = {row.tx_id for row in rows if row.block_number is not None}
            urged = [
                await self._urge(row, view, is_unmined=row.tx_id in was_in_block) for row in waiting
            ]
            await self._fill_gap(waiting)
            self._forget(urged)
            return len(unfinished)

    async def _view(self, rows: Sequence[SentTx]) -> _View:
        hashes = [attempt.tx_hash for row in rows for attempt in row.attempts]
        head, used, *receipts = await self._hand.rpc.batch(
            [
                ("eth_blockNumber", []),
                ("eth_getTransactionCount", [self._hand.address, "latest"]),
                *(("eth_getTransactionReceipt", [tx_hash]) for tx_hash in hashes),
            ]
        )
        tx_ids = [row.tx_id for row in rows for _ in row.attempts]
        sightings = {}
        for tx_id, answer in zip(tx_ids, receipts, strict=True):
            if (receipt := receipt_of(answer)) is not None:
                sightings[tx_id] = Sighting(
                    receipt.tx_hash, receipt.block_number, receipt.is_success
                )
        return _View(
            quantity_of(head, "eth_blockNumber"),
            quantity_of(used, "eth_getTransactionCount"),
            sightings,
        )

    async def _settle(self, tx: SentTx, view: _View) -> SentTx:
        """Return the transaction once what is seen of it moves it no further."""
        sighting = view.sighting_by_tx_id.get(tx.tx_id)
        confirmations = self._hand.options.confirmations
        while not tx.is_finished:
            step = next_move(tx, sighting, view.head, confirmations)
            if step is None or (after := await self._hand.move(tx, step)) is None:
                break
            _log.info("transaction moved", tx_id=tx.tx_id, status=after.status.value)
            tx = after
        return tx

    async def _urge(self, tx: SentTx, view: _View, *, is_unmined: bool) -> SentTx:
        """Do for a transaction that is in no block what is due, and return it."""
        if tx.tx_id in view.sighting_by_tx_id:
            return tx
        if is_unmined:
            self._hand.taken_at_ms.pop(tx.newest.tx_hash, None)
            self._pushed_at_ms.pop(tx.newest.tx_hash, None)
        if tx.account_nonce < view.used_nonces:
            await self._check_displaced(tx, view.head)
        elif tx.account_nonce == view.used_nonces and self._is_stuck(tx):
            return await self._hand.bump(tx)
        elif self._is_due(tx):
            self._pushed_at_ms[tx.newest.tx_hash] = self._hand.now_ms()
            return await self._hand.push(tx)
        return tx

    def _is_stuck(self, tx: SentTx) -> bool:
        """Whether a node has had the newest attempt for so long that it must be too cheap."""
        taken_at_ms = self._hand.taken_at_ms.get(tx.newest.tx_hash)
        return taken_at_ms is not None and self._is_past(taken_at_ms, BUMP_AFTER_S)

    def _is_due(self, tx: SentTx) -> bool:
        """Whether the node is to be told again: what it took it may have dropped."""
        tx_hash = tx.newest.tx_hash
        last_ms = self._pushed_at_ms.get(tx_hash)
        if tx.status is TxStatus.PENDING:
            return last_ms is None or self._is_past(last_ms, RETRY_AFTER_S)
        last_ms = last_ms or self._hand.taken_at_ms.get(tx_hash)
        return last_ms is None or self._is_past(last_ms, REBROADCAST_AFTER_S)

    def _is_past(self, since_ms: int, seconds: int) -> bool:
        return self._hand.now_ms() - since_ms >= seconds * 1000

    async def _check_displaced(self, tx: SentTx, head: int) -> None:
        """Cancel a transaction whose nonce a block has used for something that is not ours.

        It is believed only when it lasts as long as a transaction must to be believed, and when
        the node knows none of our attempts.
        """
        first_seen_at = self._displaced_at.setdefault(tx.tx_id, head)
        if head - first_seen_at < self._hand.options.confirmations:
            return
        answers = await self._hand.rpc.batch(
            [("eth_getTransactionByHash", [attempt.tx_hash]) for attempt in tx.attempts]
        )
        found = [known for known in map(chain_tx_of, answers) if known is not None]
        if not any(known.block_number is not None for known in found):
            failure = f"nonce {tx.account_nonce} of the account was used by something else"
            _log.error("nonce used elsewhere", tx_id=tx.tx_id, nonce=tx.account_nonce)
            await self._hand.move(tx, TxMove(TxTrigger.CANCEL, failure=failure))

    async def _fill_gap(self, waiting: Sequence[SentTx]) -> None:
        """Close a hole before the first waiting nonce: nothing behind it can ever be mined."""
        next_nonce = await self._hand.fetch_nonce("pending") if waiting else 0
        if not waiting or waiting[0].account_nonce <= next_nonce:
            self._gap_since_ms = None
            return
        if self._gap_since_ms is None:
            self._gap_since_ms = self._hand.now_ms()
        if not self._is_past(self._gap_since_ms, FILL_GAP_AFTER_S):
            return
        end = min(waiting[0].account_nonce, next_nonce + GAP_FILLS_MAX)
        _log.error("nonce gap", first=next_nonce, last=end - 1)
        for account_nonce in range(next_nonce, end):
            lost = await self._hand.outbox.load_at_nonce(self._hand.address, account_nonce)
            if lost is None:
                await self._hand.fill_gap(account_nonce)
            else:
                await self._hand.broadcast(lost)

    def _forget(self, waiting: Sequence[SentTx]) -> None:
        """Keep notes on what is in no block only."""
        hashes = {row.newest.tx_hash for row in waiting}
        tx_ids = {row.tx_id for row in waiting}
        for notes in (self._pushed_at_ms, self._hand.taken_at_ms):
            for tx_hash in notes.keys() - hashes:
                del notes[tx_hash]
        for tx_id in self._displaced_at.keys() - tx_ids:
            del self._displaced_at[tx_id]
