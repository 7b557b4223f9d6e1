"""Read-only keys: what reads an account's orders, trades and notifications, and changes nothing.

A key is derived from the master key and a salt; the database has the salt and a hash of the key.
"""

import hashlib
from typing import Final

import msgspec

from foretell.domain.errors.order import KeyNotOwned, RequestTaken, TooManyReadonlyKeys
from foretell.domain.values.hexadecimal import Address
from foretell.edge.auth import L2Caller, reader_id
from foretell.edge.codec import SecretObject
from foretell.store.public_reads.places import ReadKind
from foretell.store.trading.api_keys import lock_keys
from foretell.store.trading.readonly_keys import (
    ReadonlyKey,
    delete_readonly_key,
    load_readonly_key,
    load_readonly_keys,
    readonly_hash,
    record_readonly_key,
)
from foretell.trading.context import TradingContext
from foretell.trading.handlers.keys import BARE_DIALECT

READONLY_KEYS_MAX: Final = 20
READONLY_KEYS_EVER_MAX: Final = 1_000
"""Deleted keys keep their rows, so these are bounded too."""


class ReadonlyKeyRecord(SecretObject, frozen=True):
    """A read-only key; who has it can read the account."""

    api_key: str = msgspec.field(name="apiKey")


class ReadonlyKeyBody(msgspec.Struct):
    """The read-only key to delete."""

    key: str


class DeletedKey(msgspec.Struct, frozen=True):
    """The answer to a deletion."""

    deleted: bool


async def create_readonly_key(
    context: TradingContext, caller: L2Caller, request_key: str | None
) -> ReadonlyKeyRecord:
    """Return a new read-only key; requests with the same idempotency key get the same one, or none if it was deleted.

    No answer with a key is stored, so the idempotency key is the salt.
    """
    if request_key is None:
        salt = context.new_uuid()
    else:
        salt = hashlib.sha256(request_key.encode()).hexdigest()
    key = context.key_ring.readonly_key(caller.address, salt)
    async with context.database.writing() as tx:
        await lock_keys(tx, caller.address)
        keys = await load_readonly_keys(tx, caller.address)
        known = next((each for each in keys if each.salt == salt), None)
        if known is None:
            active = sum(each.is_active for each in keys)
            if active >= READONLY_KEYS_MAX or len(keys) >= READONLY_KEYS_EVER_MAX:
                raise TooManyReadonlyKeys(READONLY_KEYS_MAX, READONLY_KEYS_EVER_MAX)
            made = ReadonlyKey(readonly_hash(key), caller.address, salt, context.now_ms(), None)
            await record_readonly_key(tx, made)
        elif not known.is_active:
            raise RequestTaken
    context.key_ring.learn(readonly_hash(key))
    return ReadonlyKeyRecord(key)


async def list_readonly_keys(context: TradingContext, address: Address) -> list[str]:
    """Return the read-only keys of an address, the oldest first."""
    async with context.database.public_reading(ReadKind.OWN) as tx:
        keys = await load_readonly_keys(tx, address)
    return [context.key_ring.readonly_key(address, key.salt) for key in keys if key.is_active]


async def remove_readonly_key(context: TradingContext, caller: L2Caller, key: str) -> object:
    """Delete a read-only key of the caller's address: from now on it is refused, and its streams end."""
    async with context.database.public_reading(ReadKind.OWN) as tx:
        stored = await load_readonly_key(tx, readonly_hash(key))
    if stored is None or stored.address != caller.address or not stored.is_active:
        raise KeyNotOwned
    now_ms = context.now_ms()
    if context.revocations is not None:
        await context.revocations.record_readonly_deletion(stored, now_ms)
    async with context.database.writing() as tx:
        is_deleted = await delete_readonly_key(tx, caller.address, stored.key_hash, now_ms)
    if not is_deleted:  # another request has just deleted it
        raise KeyNotOwned
    context.key_ring.forget(stored.key_hash)
    context.streams.revoke(reader_id(stored.key_hash))
    return True if caller.dialect == BARE_DIALECT else DeletedKey(deleted=True)
