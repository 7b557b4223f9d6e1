"""Transactions that a product has sent to the chain, each product in its own pair of tables.

`TxOutbox` stores the rows of the chain's sender. Every change announces the product's topic. The tables
are written by settlement, the relayer and creation.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.evm.raw_transaction import Fees, is_noop
from foretell.domain.evm.transaction import UNFINISHED, WAITING, SentTx, TxAttempt, TxStatus
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Database, Transaction
from foretell.store.outbox.settlements import are_named
from foretell.store.tables import (
    registration_tx_attempts,
    registration_txs,
    relayed_tx_attempts,
    relayed_txs,
    settlement_tx_attempts,
    settlement_txs,
)


class TxTables(NamedTuple):
    """One product's tables, and the topic that announces their changes."""

    txs: sa.Table
    attempts: sa.Table
    topic: str


SETTLEMENT: Final = TxTables(settlement_txs, settlement_tx_attempts, "settlement_txs")
RELAYED: Final = TxTables(relayed_txs, relayed_tx_attempts, "relayed_txs")
REGISTRATION: Final = TxTables(registration_txs, registration_tx_attempts, "registration_txs")


async def load_tx(tx: Transaction, tables: TxTables, tx_id: str) -> SentTx | None:
    """Return the transaction with this id, or None."""
    found = await _load(tx, tables, tables.txs.c.tx_id == tx_id, limit=1)
    return found[0] if found else None


async def load_txs(tx: Transaction, tables: TxTables, tx_ids: Sequence[str]) -> Sequence[SentTx]:
    """Return the transactions with these ids, in the order of their nonces."""
    return await _load(tx, tables, tables.txs.c.tx_id.in_(tx_ids), limit=len(tx_ids))


async def load_settlement_txs(tx: Transaction) -> Sequence[SentTx]:
    """Return all transactions that settlement ever sent, in the order of their nonces."""
    count = await tx.scalar(sa.select(sa.func.count()).select_from(settlement_txs))
    return await _load(tx, SETTLEMENT, sa.true(), limit=int(count))


class WaitingTxs(NamedTuple):
    """How many transactions of an account are in no block: those no node is known to have, and the others."""

    pending: int
    sent: int


async def load_waiting(tx: Transaction, tables: TxTables) -> Mapping[Address, WaitingTxs]:
    """Return how many transactions of each account are in no block."""
    columns = tables.txs.c
    rows = await tx.all(
        sa.select(columns.sender, columns.status, sa.func.count().label("waiting"))
        .where(columns.status.in_(sorted(WAITING)))
        .group_by(columns.sender, columns.status)
    )
    counts = {(row.sender, row.status): row.waiting for row in rows}
    return {
        Address(sender): WaitingTxs(
            counts.get((sender, TxStatus.PENDING), 0), counts.get((sender, TxStatus.SENT), 0)
        )
        for sender, _ in counts
    }


class TxOutbox:
    """The chain sender's access to one product's tables."""

    def __init__(self, database: Database, tables: TxTables) -> None:
        self._database = database
        self._tables = tables

    async def load(self, tx_id: str) -> SentTx | None:
        """Return the transaction with this id, or None."""
        async with self._database.reading() as tx:
            return await load_tx(tx, self._tables, tx_id)

    async def load_all(self, tx_ids: Sequence[str]) -> Sequence[SentTx]:
        """Return the transactions with these ids, in the order of their nonces."""
        async with self._database.reading() as tx:
            return await load_txs(tx, self._tables, tx_ids)

    async def load_unfinished(self, sender: Address, limit: int) -> Sequence[SentTx]:
        """Return transactions whose outcome is not final, the lowest nonce first."""
        columns = self._tables.txs.c
        async with self._database.reading() as tx:
            unfinished = (columns.sender == sender) & columns.status.in_(sorted(UNFINISHED))
            return await _load(tx, self._tables, unfinished, limit)

    async def load_other_senders(self, sender: Address) -> Sequence[Address]:
        """Return the other accounts that have transactions whose outcome is not final."""
        columns = self._tables.txs.c
        query = (
            sa.select(columns.sender)
            .where(columns.sender != sender, columns.status.in_(sorted(UNFINISHED)))
            .distinct()
            .order_by(columns.sender)
        )
        async with self._database.reading() as tx:
            return [Address(row.sender) for row in await tx.all(query)]

    async def load_at_nonce(self, sender: Address, account_nonce: int) -> SentTx | None:
        """Return the transaction with this nonce, or None."""
        columns = self._tables.txs.c
        async with self._database.reading() as tx:
            at_nonce = (columns.sender == sender) & (columns.account_nonce == account_nonce)
            found = await _load(tx, self._tables, at_nonce, limit=1)
        return found[0] if found else None

    async def load_last_nonce(self, sender: Address) -> int | None:
        """Return the highest nonce of the account's transactions, or None without any."""
        columns = self._tables.txs.c
        async with self._database.reading() as tx:
            last: int | None = await tx.scalar(
                sa.select(sa.func.max(columns.account_nonce)).where(columns.sender == sender)
            )
        return last

    async def record_new(self, new: SentTx) -> bool:
        """Store a new transaction, or return False when its id or its nonce is taken, or no trade names it any more."""
        return await self.record_all_new([new])

    async def record_all_new(self, txs: Sequence[SentTx]) -> bool:
        """Store new transactions, or none of them and return False when an id or a nonce is taken.

        So it is when the trades that one of settlement carries do not name it: another process had them go without it.
        """
        attempts = [_attempt_row(new.tx_id, attempt) for new in txs for attempt in new.attempts]
        try:
            async with self._database.writing() as tx:
                if self._tables is SETTLEMENT and not await are_named(tx, [x.tx_id for x in txs]):
                    return False
                await tx.execute(self._tables.txs.insert(), [_new_row(new) for new in txs])
                await tx.execute(self._tables.attempts.insert(), attempts)
                await tx.announce(self._tables.topic)
        except sa.exc.IntegrityError:
            return False
        return True

    async def record_attempt(self, attempted: SentTx) -> None:
        """Store the newest attempt of a transaction, and its failure."""
        txs, attempts, topic = self._tables
        async with self._database.writing() as tx:
            await tx.execute(attempts.insert(), [_attempt_row(attempted.tx_id, attempted.newest)])
            changed = await tx.execute(
                txs.update()
                .where(txs.c.tx_id == attempted.tx_id)
                .values(failure=attempted.failure, updated_at_ms=attempted.updated_at_ms)
            )
            assert changed == 1
            await tx.announce(topic)

    async def record_move(self, was: SentTx, now: SentTx) -> bool:
        """Store a new status, or return False when the transaction is no longer in the old one."""
        (is_moved,) = await self.record_moves([(was, now)])
        return is_moved

    async def record_moves(self, moves: Sequence[tuple[SentTx, SentTx]]) -> Sequence[bool]:
        """Store new statuses, and return for each whether the transaction was still in the old one."""
        txs = self._tables.txs
        async with self._database.writing() as tx:
            query = sa.select(txs.c.tx_id, txs.c.status).with_for_update()
            ids = [was.tx_id for was, _ in moves]
            rows = await tx.all(query.where(txs.c.tx_id.in_(ids)))
            status_by_id = {row.tx_id: row.status for row in rows}
            are_moved = [status_by_id.get(was.tx_id) == was.status.value for was, _ in moves]
            changed = [now for (_, now), is_moved in zip(moves, are_moved, strict=True) if is_moved]
            if changed:
                moved = txs.update().where(txs.c.tx_id == sa.bindparam("moved_id"))
                await tx.execute(
                    moved, [{"moved_id": each.tx_id, **_changing(each)} for each in changed]
                )
            await tx.announce(self._tables.topic)
        return are_moved


def _new_row(new: SentTx) -> dict[str, Any]:
    return {
        "tx_id": new.tx_id,
        "sender": new.sender,
        "account_nonce": new.account_nonce,
        "target": new.target,
        "calldata": "0x" + new.calldata.hex(),
        "gas": new.gas,
        "created_at_ms": new.created_at_ms,
        **_changing(new),
    }


def _changing(tx: SentTx) -> Mapping[str, Any]:
    """Return the columns that a move changes."""
    return {
        "status": tx.status.value,
        "failure": tx.failure,
        "mined_hash": tx.mined_hash,
        "block_number": tx.block_number,
        "updated_at_ms": tx.updated_at_ms,
    }


def _attempt_row(tx_id: str, attempt: TxAttempt) -> dict[str, Any]:
    return {
        "tx_hash": attempt.tx_hash,
        "tx_id": tx_id,
        "raw": "0x" + attempt.raw.hex(),
        "max_fee_wei": attempt.fees.max_fee_wei,
        "priority_fee_wei": attempt.fees.priority_fee_wei,
        "created_at_ms": attempt.created_at_ms,
    }


async def _load(
    tx: Transaction, tables: TxTables, condition: sa.ColumnElement[bool], limit: int
) -> Sequence[SentTx]:
    txs, attempts, _ = tables
    rows = await tx.all(
        sa.select(txs).where(condition).order_by(txs.c.sender, txs.c.account_nonce).limit(limit)
    )
    tx_ids = [row.tx_id for row in rows]
    attempt_rows = await tx.all(sa.select(attempts).where(attempts.c.tx_id.in_(tx_ids)))
    attempts_by_tx_id: dict[str, list[sa.Row[Any]]] = {tx_id: [] for tx_id in tx_ids}
    for attempt in attempt_rows:
        attempts_by_tx_id[attempt.tx_id].append(attempt)
    return [_sent_tx(row, attempts_by_tx_id[row.tx_id]) for row in rows]


def _sent_tx(row: sa.Row[Any], attempt_rows: Iterable[sa.Row[Any]]) -> SentTx:
    sender = Address(row.sender)
    attempts = [
        TxAttempt(
            Bytes32(attempt.tx_hash),
            bytes.fromhex(attempt.raw[2:]),
            Fees(attempt.max_fee_wei, attempt.priority_fee_wei),
            attempt.created_at_ms,
        )
        for attempt in attempt_rows
    ]
    # Fees never fall from one attempt to the next; after the cap only the no-op attempt follows.
    attempts.sort(key=lambda attempt: (attempt.fees, is_noop(attempt.raw, sender)))
    return SentTx(
        tx_id=row.tx_id,
        sender=sender,
        account_nonce=row.account_nonce,
        target=Address(row.target),
        calldata=bytes.fromhex(row.calldata[2:]),
        gas=row.gas,
        status=TxStatus(row.status),
        attempts=tuple(attempts),
        created_at_ms=row.created_at_ms,
        updated_at_ms=row.updated_at_ms,
        failure=row.failure,
        mined_hash=row.mined_hash,
        block_number=row.block_number,
    )
