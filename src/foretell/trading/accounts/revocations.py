"""Revocations that outlive the database: each is in a log beside it before it is answered.

At a start, the database learns those that it does not know because it was restored from an older copy.
"""

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Final

import structlog

from foretell.domain.errors.storage import StoreUnavailable
from foretell.journal.files.revocations import LoggedRevocation, RevocationLog
from foretell.store.database import Database
from foretell.store.trading.api_keys import (
    REVOKED,
    ApiKey,
    load_revoked_ids,
    record_revoked_key,
    revoke_key,
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
        try:
            await asyncio.to_thread(self._log.append, revocation)
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


async def _restore(database: Database, logged: Sequence[LoggedRevocation]) -> int:
    async with database.reading() as tx:
        known = await load_revoked_ids(tx, [each.key_id for each in logged])
    missing = {each.key_id: _key(each) for each in logged if each.key_id not in known}
    if missing:
        async with database.writing() as tx:
            for key in missing.values():
                assert key.revoked_at_ms is not None, "it was logged as revoked"
                if not await revoke_key(tx, key.key_id, key.revoked_at_ms):
                    await record_revoked_key(tx, key)
    return len(missing)


def _key(logged: LoggedRevocation) -> ApiKey:
    return ApiKey(
        key_id=logged.key_id,
        index=logged.index,
        status=REVOKED,
        created_at_ms=logged.created_at_ms,
        revoked_at_ms=logged.revoked_at_ms,
        signed_at_s=logged.signed_at_s,
    )
