"""Builders' keys: created and listed by an address, deleted by the key itself or by its address.

The answer to a creation is the only one with the secrets. The salt of a key is a hash of the name or the
signature of the request that created it: the request sent again gets the same key, and nothing of the answer
is stored.
"""

import hashlib
from typing import Final

import msgspec

from foretell.domain.errors.builders import TooManyBuilderKeys
from foretell.domain.errors.order import KeyNotOwned, RequestTaken
from foretell.domain.values.hexadecimal import Address
from foretell.domain.values.instants import iso_time
from foretell.edge.auth import L2Caller
from foretell.edge.codec import SecretObject
from foretell.store.public_reads.places import ReadKind
from foretell.store.trading.api_keys import lock_keys
from foretell.store.trading.builder_keys import (
    BuilderKey,
    delete_builder_key,
    load_builder_key,
    load_builder_keys,
    record_builder_key,
)
from foretell.trading.context import TradingContext

BUILDER_KEYS_MAX: Final = 20
BUILDER_KEYS_EVER_MAX: Final = 1_000
"""Deleted keys keep their rows, so these are bounded too."""


class BuilderCredentials(SecretObject, frozen=True):
    """A builder's set of credentials; no other answer contains its secrets."""

    key: str
    secret: str
    passphrase: str


class BuilderKeyRecord(msgspec.Struct, frozen=True):
    """The public fields of a builder's key."""

    key: str
    created_at: str = msgspec.field(name="createdAt")
    revoked_at: str | None = msgspec.field(name="revokedAt")


async def create_builder_key(
    context: TradingContext, caller: L2Caller, request_name: str
) -> BuilderCredentials:
    """Return a new builder's key; a request of the same name gets the same one, or none if it was deleted."""
    salt = hashlib.sha256(request_name.encode()).hexdigest()
    made = context.key_ring.builders.credentials(caller.address, salt)
    async with context.database.writing() as tx:
        await lock_keys(tx, caller.address)
        keys = await load_builder_keys(tx, caller.address)
        known = next((key for key in keys if key.key_id == made.key_id), None)
        if known is None:
            active = sum(key.is_active for key in keys)
            if active >= BUILDER_KEYS_MAX or len(keys) >= BUILDER_KEYS_EVER_MAX:
                raise TooManyBuilderKeys(BUILDER_KEYS_MAX, BUILDER_KEYS_EVER_MAX)
            now_ms = context.now_ms()
            await record_builder_key(
                tx, BuilderKey(made.key_id, caller.address, salt, now_ms, None)
            )
        elif not known.is_active:
            raise RequestTaken
    context.key_ring.builders.learn(made.key_id)
    return BuilderCredentials(made.key_id, made.secret, made.passphrase)


async def list_builder_keys(context: TradingContext, address: Address) -> list[BuilderKeyRecord]:
    """Return the builder's keys of an address that are accepted, the oldest first."""
    async with context.database.public_reading(ReadKind.OWN) as tx:
        keys = await load_builder_keys(tx, address)
    return [
        BuilderKeyRecord(key.key_id, iso_time(key.created_at_ms), None)
        for key in keys
        if key.is_active
    ]


async def remove_newest_builder_key(context: TradingContext, address: Address) -> str:
    """Delete the newest builder's key of an address, as clients expect that name none."""
    active = await list_builder_keys(context, address)
    if not active:
        raise KeyNotOwned
    return await remove_builder_key(context, address, active[-1].key)


async def check_deleted(context: TradingContext, address: Address, key_id: str) -> None:
    """Refuse to call a key deleted that is not: the first request with this signature named another."""
    if any(each.key == key_id for each in await list_builder_keys(context, address)):
        raise RequestTaken


async def remove_builder_key(context: TradingContext, address: Address, key_id: str) -> str:
    """Delete a builder's key of an address: from now on it is refused."""
    async with context.database.public_reading(ReadKind.OWN) as tx:
        key = await load_builder_key(tx, key_id)
    if key is None or key.address != address or not key.is_active:
        raise KeyNotOwned
    now_ms = context.now_ms()
    if context.revocations is not None:
        await context.revocations.record_builder_deletion(key, now_ms)
    async with context.database.writing() as tx:
        if not await delete_builder_key(tx, key_id, now_ms):  # another request has just deleted it
            raise KeyNotOwned
    context.key_ring.builders.forget_all()
    return "OK"
