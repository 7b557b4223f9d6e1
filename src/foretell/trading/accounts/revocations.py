"""Revocations that outlive the database: each is in a log beside it before it is answered.

Deletions of builders' keys and of read-only keys are in the same log.

At a start, the database learns those that it does not know because it was restored from an older copy.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

import structlog

from foretell.domain.errors.storage import StoreUnavailable
from foretell.domain.values.hexadecimal import Address
from foretell.journal.files.revocations import (
    DeletedKind,
    LoggedDeletion,
    LoggedKey,
    LoggedRevocation,
    RevocationLog,
)
from foretell.runtime.threads import run_in_thread
from foretell.store.database import Database, Transaction
from foretell.store.trading.api_keys import (
    REVOKED,
    ApiKey,
    load_revoked_ids,
    record_revoked_key,
    revoke_earlier,
    revoke_key,
)
from foretell.store.trading.builder_keys import (
    BuilderKey,
    delete_builder_key,
    load_deleted_builder_ids,
    record_builder_key,
)
from foretell.store.trading.readonly_keys import (
    ReadonlyKey,
    delete_readonly_key,
    load_deleted_hashes,
    record_readonly_key,
)

READ_AT_ONCE: Final = 500

log = structlog.get_logger(__name__)


class Revocations:
    """The log of a data folder, for the keys of one epoch."""

    def __init__(self, revocations: RevocationLog, epoch: str) -> None:
        self._log = revocations
        self._epoch = epoch

    async def record(self, key: ApiKey, now_ms: int) -> None:
        """Make the revocation of a key durable, before the transaction that revokes it commits."""
        revocation = LoggedRevocation(
            epoch=self._epoch,
            key_id=key.key_id,
            chain_id=key.index.chain_id,
            address=key.index.address,
            nonce=str(key.index.nonce),
            generation=key.index.generation,
            created_at_ms=key.created_at_ms,
            revoked_at_ms=now_ms,
            signed_at_s=key.signed_at_s,
        )
        await self._append(revocation)

    async def record_builder_deletion(self, key: BuilderKey, now_ms: int) -> None:
        """Make the deletion of a builder's key durable, before the transaction that deletes it commits."""
        await self._append(
            LoggedDeletion(
                kind=DeletedKind.BUILDER,
                epoch=self._epoch,
                key_id=key.key_id,
                address=key.address,
                salt=key.salt,
                created_at_ms=key.created_at_ms,
                deleted_at_ms=now_ms,
            )
        )

    async def record_readonly_deletion(self, key: ReadonlyKey, now_ms: int) -> None:
        """Make the deletion of a read-only key durable, before the transaction that deletes it commits."""
        await self._append(
            LoggedDeletion(
                kind=DeletedKind.READONLY,
                epoch=self._epoch,
                key_id=key.key_hash,
                address=key.address,
                salt=key.salt,
                created_at_ms=key.created_at_ms,
                deleted_at_ms=now_ms,
            )
        )

    async def _append(self, logged: LoggedKey) -> None:
        try:
            await run_in_thread(self._log.append, logged)
        except OSError as error:
            raise StoreUnavailable(f"the log of revocations: {error.strerror}") from error

    async def restore(self, database: Database) -> int:
        """Revoke in the database what is revoked in the log; return how many keys that were.

        Keys of another epoch are of a lost database. None of them can be derived any more.
        """
        logged = (each for each in self._log.read() if each.epoch == self._epoch)
        restored = 0
        while part := list(islice(logged, READ_AT_ONCE)):
            restored += await _restore(database, part)
        if restored:
            log.warning(
                "the database is older than its last revocations: keys are revoked again",
                keys=restored,
            )
        return restored

    async def compact(self) -> int:
        """Shorten the log, and return by how many lines; if the disk refuses, it stays as it is."""
        try:
            return await run_in_thread(self._log.compact)
        except OSError as error:
            log.warning("the log of revocations cannot be shortened", cause=error.strerror)
            return 0


async def _restore(database: Database, logged: Sequence[LoggedKey]) -> int:
    """Write what the database does not know, and return how many keys that were."""
    revoked = [each for each in logged if isinstance(each, LoggedRevocation)]
    deleted = [each for each in logged if isinstance(each, LoggedDeletion)]
    async with database.reading() as tx:
        known = await load_revoked_ids(tx, [each.key_id for each in revoked])
        known_builders = await load_deleted_builder_ids(tx, _ids(deleted, DeletedKind.BUILDER))
        known_readers = await load_deleted_hashes(tx, _ids(deleted, DeletedKind.READONLY))
    known_by_kind = {DeletedKind.BUILDER: known_builders, DeletedKind.READONLY: known_readers}
    missing = {each.key_id: _key(each) for each in revoked if each.key_id not in known}
    gone = {each.key_id: each for each in deleted if each.key_id not in known_by_kind[each.kind]}
    if missing or gone:
        async with database.writing() as tx:
            for key in missing.values():
                assert key.revoked_at_ms is not None, "it was logged as revoked"
                if not await revoke_key(tx, key.key_id, key.revoked_at_ms):
                    await record_revoked_key(tx, key)
                await revoke_earlier(tx, key.index, key.revoked_at_ms)
            for each in gone.values():
                await _delete(tx, each)
    return len(missing) + len(gone)


def _ids(deleted: Sequence[LoggedDeletion], kind: DeletedKind) -> list[str]:
    return [each.key_id for each in deleted if each.kind is kind]


async def _delete(tx: Transaction, logged: LoggedDeletion) -> None:
    """Delete a key that is active in the database, or store one that it never saw as deleted."""
    key_id, address, at_ms = logged.key_id, Address(logged.address), logged.deleted_at_ms
    if logged.kind is DeletedKind.BUILDER:
        if not await delete_builder_key(tx, key_id, at_ms):
            builder = BuilderKey(key_id, address, logged.salt, logged.created_at_ms, at_ms)
            await record_builder_key(tx, builder)
    elif not await delete_readonly_key(tx, address, key_id, at_ms):
        reader = ReadonlyKey(key_id, address, logged.salt, logged.created_at_ms, at_ms)
        await record_readonly_key(tx, reader)


def _key(logged: LoggedRevocation) -> ApiKey:
    return ApiKey(
        key_id=logged.key_id,
        index=logged.index,
        status=REVOKED,
        created_at_ms=logged.created_at_ms,
        revoked_at_ms=logged.revoked_at_ms,
        signed_at_s=logged.signed_at_s,
    )
