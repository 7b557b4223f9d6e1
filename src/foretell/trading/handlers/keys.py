"""API keys: created and derived by who signs with a wallet, listed and revoked by who holds one.

The database keeps the index of each key. What belongs to it is derived when a fresh signature asks
for it, and leaves in that answer alone.
"""

from collections.abc import Sequence

import msgspec

from foretell.domain.errors.http import NoSuchCredentials
from foretell.domain.errors.order import KeyNotOwned
from foretell.domain.values.credentials import (
    Credentials,
    KeyIndex,
    check_nonce_order,
    next_generation,
)
from foretell.edge.auth import L1Caller, L2Caller
from foretell.edge.rendering import iso_time
from foretell.store.trading.api_keys import (
    ApiKey,
    load_key,
    load_keys,
    lock_keys,
    record_key,
    revoke_key,
)
from foretell.trading.context import TradingContext

BARE_DIALECT = "poly_"
"""Clients of this dialect want answers of another shape."""


class CredentialsRecord(msgspec.Struct, frozen=True):
    """A set of credentials, in the one answer that has it."""

    api_key: str = msgspec.field(name="apiKey")
    secret: str
    passphrase: str


class KeyRecord(msgspec.Struct, frozen=True):
    """What may be told of a key."""

    api_key: str = msgspec.field(name="apiKey")
    nonce: str
    status: str
    created_at: str = msgspec.field(name="createdAt")
    revoked_at: str | None = msgspec.field(name="revokedAt")


async def create_key(context: TradingContext, caller: L1Caller) -> CredentialsRecord:
    """Return the set of a nonce: the one that there is, or a new one.

    After a revocation the same nonce gives other credentials, and so it does after a change of the
    master key: the set of before, which nobody can derive any more, is revoked for good. A nonce
    that was never used must be greater than every one that was.
    """
    async with context.database.writing() as tx:
        await lock_keys(tx, caller.address)
        keys = await load_keys(tx, caller.chain_id, caller.address)
        latest = _latest(keys, caller.nonce)
        if latest is None:
            used = [key.index.nonce for key in keys]
            check_nonce_order(caller.nonce, max(used, default=None))
        elif _opens(context, latest):
            return _record(context.key_ring.credentials(latest.index))
        elif latest.is_active:
            await revoke_key(tx, latest.key_id, context.now_ms())
        generation = next_generation(
            None if latest is None else latest.index.generation, is_revoked=True
        )
        index = KeyIndex(caller.chain_id, caller.address, caller.nonce, generation)
        credentials = context.key_ring.credentials(index)
        await record_key(tx, credentials.key_id, index, context.now_ms())
    if latest is not None:
        _close(context, latest.key_id)
    return _record(credentials)


async def derive_key(context: TradingContext, caller: L1Caller) -> CredentialsRecord:
    """Return the set of a nonce that was created before, or refuse."""
    async with context.database.reading() as tx:
        latest = _latest(await load_keys(tx, caller.chain_id, caller.address), caller.nonce)
    if latest is None or not latest.is_active:
        raise NoSuchCredentials("no credentials of this address and nonce are in use")
    if not _opens(context, latest):
        raise NoSuchCredentials(
            "the credentials of this address and nonce are of a master key that the operator has"
            " changed; create them anew"
        )
    return _record(context.key_ring.credentials(latest.index))


async def list_keys(context: TradingContext, caller: L2Caller, *, with_metadata: bool) -> object:
    """Return the caller's keys that open something: none that is revoked, or of another master key."""
    keys = [key for key in await _load_keys(context, caller) if _opens(context, key)]
    if with_metadata:
        return [_key_record(key) for key in keys]
    ids = [key.key_id for key in keys]
    return {"apiKeys": ids} if caller.dialect == BARE_DIALECT else ids


async def revoke(context: TradingContext, caller: L2Caller, key_id: str | None) -> object:
    """End a key of the caller's address, the calling one if none is named, and all it opened."""
    meant = key_id or caller.key_id
    async with context.database.writing() as tx:
        key = await load_key(tx, meant)
        is_own = key is not None and key.index.address == caller.address
        if not is_own or not await revoke_key(tx, meant, context.now_ms()):
            raise KeyNotOwned
    _close(context, meant)
    return "OK" if caller.dialect == BARE_DIALECT else {"revoked": True}


async def _load_keys(context: TradingContext, caller: L2Caller) -> Sequence[ApiKey]:
    async with context.database.reading() as tx:
        calling = await load_key(tx, caller.key_id)
        if calling is None:
            return ()
        return await load_keys(tx, calling.index.chain_id, caller.address)


def _latest(keys: Sequence[ApiKey], nonce: int) -> ApiKey | None:
    """Return the key of a nonce with the highest generation."""
    same = [key for key in keys if key.index.nonce == nonce]
    return max(same, key=lambda key: key.index.generation, default=None)


def _opens(context: TradingContext, key: ApiKey) -> bool:
    """Return whether the set of a key can be told: it is in use, and of the present master key."""
    return key.is_active and context.key_ring.credentials(key.index).key_id == key.key_id


def _close(context: TradingContext, key_id: str) -> None:
    """Let a key that was revoked open nothing any more, and end what it opened."""
    context.key_ring.forget(key_id)
    context.streams.revoke(key_id)


def _record(credentials: Credentials) -> CredentialsRecord:
    return CredentialsRecord(credentials.key_id, credentials.secret, credentials.passphrase)


def _key_record(key: ApiKey) -> KeyRecord:
    return KeyRecord(
        api_key=key.key_id,
        nonce=str(key.index.nonce),
        status=key.status,
        created_at=iso_time(key.created_at_ms),
        revoked_at=None if key.revoked_at_ms is None else iso_time(key.revoked_at_ms),
    )
