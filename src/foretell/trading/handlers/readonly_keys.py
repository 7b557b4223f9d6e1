"""Read-only keys: what reads an account's orders, trades and notifications, and changes nothing.

A key is derived from the master key and a salt; the database has the salt and a hash of the key.
"""

import hashlib
from typing import Final

import msgspec

from foretell.domain.errors.order import KeyNotOwned, TooManyReadonlyKeys
from foretell.domain.values.hexadecimal import Address
from foretell.edge.auth import L2Caller
from foretell.edge.codec import SecretObject
from foretell.store.trading.api_keys import lock_keys
from foretell.store.trading.readonly_keys import (
    delete_readonly_key,
    load_readonly_salts,
    readonly_hash,
    record_readonly_key,
)
from foretell.trading.context import TradingContext
from foretell.trading.handlers.keys import BARE_DIALECT

READONLY_KEYS_MAX: Final = 20


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
    """Return a new read-only key; requests with the same idempotency key get the same one.

    No answer with a key is stored, so the idempotency key is the salt.
    """
    if request_key is None:
        salt = context.new_uuid()
    else:
        salt = hashlib.sha256(request_key.encode()).hexdigest()
    key = context.key_ring.readonly_key(caller.address, salt)
    async with context.database.writing() as tx:
        await lock_keys(tx, caller.address)
        salts = await load_readonly_salts(tx, caller.address)
        if salt not in salts and len(salts) >= READONLY_KEYS_MAX:
            raise TooManyReadonlyKeys(READONLY_KEYS_MAX)
        await record_readonly_key(tx, key, caller.address, salt, context.now_ms())
    return ReadonlyKeyRecord(key)


async def list_readonly_keys(context: TradingContext, address: Address) -> list[str]:
    """Return the read-only keys of an address, the oldest first."""
    async with context.database.reading() as tx:
        salts = await load_readonly_salts(tx, address)
    return [context.key_ring.readonly_key(address, salt) for salt in salts]


async def remove_readonly_key(context: TradingContext, caller: L2Caller, key: str) -> object:
    """Delete a read-only key of the caller's address: from now on it is refused."""
    async with context.database.writing() as tx:
        is_deleted = await delete_readonly_key(tx, caller.address, readonly_hash(key))
    if not is_deleted:
        raise KeyNotOwned
    return True if caller.dialect == BARE_DIALECT else DeletedKey(deleted=True)
