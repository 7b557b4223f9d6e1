"""API keys: the index of each set of credentials, never the credentials themselves.

Written by trading.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.credentials import KeyIndex
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.tables import api_keys

TOPIC = "api_keys"
ACTIVE = "active"
REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key without its secrets.

    `signed_at_s` is the latest time of signing of a request for it that was ahead of the clock.
    """

    key_id: str
    index: KeyIndex
    status: str
    created_at_ms: int
    revoked_at_ms: int | None
    signed_at_s: int | None = None

    @property
    def is_active(self) -> bool:
        """Whether the key is still accepted."""
        return self.status == ACTIVE


class UsedKeys(NamedTuple):
    """All keys that an address ever created, as far as the next one depends on them.

    `revoked_at_s` is the second up to which a request for a revoked one may have been signed. Usually that is
    the latest revocation. A client whose clock is ahead has signed for later times.
    """

    created: int
    nonce_max: int | None
    revoked_at_s: int | None


async def lock_keys(tx: Transaction, address: Address) -> None:
    """Lock the keys of an address against other creators until this transaction ends."""
    if tx.dialect == "postgresql":
        await tx.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext(address))))


async def record_key(tx: Transaction, key_id: str, index: KeyIndex, now_ms: int) -> None:
    """Store a new key; the database refuses a second one of the same index."""
    await tx.execute(
        api_keys.insert().values(
            key_id=key_id,
            chain_id=index.chain_id,
            address=index.address,
            nonce=str(index.nonce),
            generation=index.generation,
            status=ACTIVE,
            created_at_ms=now_ms,
        )
    )


async def record_signing(tx: Transaction, key_id: str, signed_at_s: int) -> None:
    """Store a time of signing that is ahead of the clock."""
    column = api_keys.c.signed_at_s
    await tx.execute(
        api_keys.update()
        .where(api_keys.c.key_id == key_id, sa.func.coalesce(column, 0) < signed_at_s)
        .values(signed_at_s=signed_at_s)
    )


async def revoke_key(tx: Transaction, key_id: str, now_ms: int) -> bool:
    """Revoke a key permanently; return whether it was active."""
    changed = await tx.execute(
        api_keys.update()
        .where(api_keys.c.key_id == key_id, api_keys.c.status == ACTIVE)
        .values(status=REVOKED, revoked_at_ms=now_ms)
    )
    await tx.announce(TOPIC)
    return changed == 1


async def revoke_earlier(tx: Transaction, index: KeyIndex, now_ms: int) -> None:
    """Revoke the generations before one that is revoked, where a database still has one as active."""
    await tx.execute(
        api_keys.update()
        .where(
            api_keys.c.chain_id == index.chain_id,
            api_keys.c.address == index.address,
            api_keys.c.nonce == str(index.nonce),
            api_keys.c.generation < index.generation,
            api_keys.c.status == ACTIVE,
        )
        .values(status=REVOKED, revoked_at_ms=now_ms)
    )


async def record_revoked_key(tx: Transaction, key: ApiKey) -> None:
    """Store a key that was revoked before this database knew it, unless it knows its index."""
    await tx.insert_new(
        api_keys,
        key_id=key.key_id,
        chain_id=key.index.chain_id,
        address=key.index.address,
        nonce=str(key.index.nonce),
        generation=key.index.generation,
        status=REVOKED,
        created_at_ms=key.created_at_ms,
        revoked_at_ms=key.revoked_at_ms,
        signed_at_s=key.signed_at_s,
    )


async def load_revoked_ids(tx: Transaction, key_ids: Sequence[str]) -> set[str]:
    """Return which of these keys are known and revoked."""
    rows = await tx.all(
        sa.select(api_keys.c.key_id).where(
            api_keys.c.key_id.in_(key_ids), api_keys.c.status == REVOKED
        )
    )
    return {row.key_id for row in rows}


async def load_key(tx: Transaction, key_id: str) -> ApiKey | None:
    """Return a key, active or revoked."""
    row = await tx.first(sa.select(api_keys).where(api_keys.c.key_id == key_id))
    return None if row is None else _key(row)


async def load_latest_key(
    tx: Transaction, chain_id: int, address: Address, nonce: int
) -> ApiKey | None:
    """Return the key of a nonce with the highest generation, active or revoked."""
    row = await tx.first(
        sa.select(api_keys)
        .where(*_of(chain_id, address), api_keys.c.nonce == str(nonce))
        .order_by(api_keys.c.generation.desc())
        .limit(1)
    )
    return None if row is None else _key(row)


async def load_used_keys(tx: Transaction, chain_id: int, address: Address) -> UsedKeys:
    """Return what a new key of an address depends on; nonces are texts, the longest of which are the greatest."""
    nonce, revoked_at_ms = api_keys.c.nonce, api_keys.c.revoked_at_ms
    signed_at_s = sa.case((revoked_at_ms.is_not(None), api_keys.c.signed_at_s))
    keys = _of(chain_id, address)
    totals = await tx.first(
        sa.select(
            sa.func.count().label("created"),
            sa.func.max(revoked_at_ms).label("revoked_at_ms"),
            sa.func.max(signed_at_s).label("signed_at_s"),
        ).where(*keys)
    )
    assert totals is not None
    greatest = sa.func.length(nonce).desc(), nonce.desc()
    last = await tx.first(sa.select(nonce).where(*keys).order_by(*greatest).limit(1))
    revoked_at_s = None
    if totals.revoked_at_ms is not None:
        revoked_at_s = max(totals.revoked_at_ms // 1000, totals.signed_at_s or 0)
    return UsedKeys(totals.created, None if last is None else int(last.nonce), revoked_at_s)


async def load_active_keys(
    tx: Transaction, chain_id: int, address: Address, most: int
) -> Sequence[ApiKey]:
    """Return the active keys of an address, at most so many, the oldest first."""
    rows = await tx.all(
        sa.select(api_keys)
        .where(*_of(chain_id, address), api_keys.c.status == ACTIVE)
        .order_by(api_keys.c.created_at_ms, api_keys.c.key_id)
        .limit(most)
    )
    return [_key(row) for row in rows]


def _of(chain_id: int, address: Address) -> tuple[sa.ColumnElement[bool], ...]:
    return api_keys.c.chain_id == chain_id, api_keys.c.address == address


def _key(row: sa.Row[Any]) -> ApiKey:
    return ApiKey(
        key_id=row.key_id,
        index=KeyIndex(row.chain_id, Address(row.address), int(row.nonce), row.generation),
        status=row.status,
        created_at_ms=row.created_at_ms,
        revoked_at_ms=row.revoked_at_ms,
        signed_at_s=row.signed_at_s,
    )
