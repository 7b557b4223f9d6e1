"""API keys: created and derived with a wallet's signature, listed and revoked with a key.

The database stores the index of each key. The credentials are derived from it when a fresh wallet
signature requests them, and appear only in that answer.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from foretell.domain.errors.http import MalformedBody, NoSuchCredentials
from foretell.domain.errors.order import KeyNotOwned, RequestTaken, TooManyApiKeys
from foretell.domain.values.credentials import (
    Credentials,
    KeyIndex,
    check_nonce_order,
    check_signed_after,
    next_generation,
)
from foretell.domain.values.instants import iso_time
from foretell.domain.values.strict_json import check_depth
from foretell.edge.auth import L1Caller, L2Caller
from foretell.edge.codec import SecretObject
from foretell.store.database import Transaction
from foretell.store.public_reads.places import ReadKind, client_name
from foretell.store.trading.api_keys import (
    ApiKey,
    load_active_keys,
    load_key,
    load_latest_key,
    load_used_keys,
    lock_keys,
    record_key,
    record_signing,
    revoke_key,
)
from foretell.store.trading.referrals import record_referral
from foretell.trading.context import TradingContext

BARE_DIALECT: Final = "poly_"
"""Clients of this dialect expect answers of another shape."""

API_KEYS_EVER_MAX: Final = 1_000
"""Of one address. Revoked keys keep their rows, so these count too."""
KEYS_PER_PART: Final = 50
"""The keys of a list that are derived in one turn of the event loop."""


class CredentialsRecord(SecretObject, frozen=True):
    """A set of credentials; no other answer contains its secrets."""

    api_key: str = msgspec.field(name="apiKey")
    secret: str
    passphrase: str


class KeyRecord(msgspec.Struct, frozen=True):
    """The public fields of a key."""

    api_key: str = msgspec.field(name="apiKey")
    nonce: str
    status: str
    created_at: str = msgspec.field(name="createdAt")
    revoked_at: str | None = msgspec.field(name="revokedAt")


class KeyList(msgspec.Struct, frozen=True):
    """The ids of keys, as clients of the other dialect expect them."""

    api_keys: Sequence[str] = msgspec.field(name="apiKeys")


class Revocation(msgspec.Struct, frozen=True):
    """The answer to a revocation."""

    revoked: bool


class _NamedKey(msgspec.Struct):
    api_key: object = msgspec.field(name="apiKey", default=msgspec.UNSET)


_NAMED_KEY: Final = msgspec.json.Decoder(_NamedKey)


async def create_key(context: TradingContext, caller: L1Caller) -> CredentialsRecord:
    """Return the credentials of a nonce, creating them if there are none.

    After a revocation the same nonce gives other credentials. So it does after a change of the
    master key: the former set, which can no longer be derived, is revoked permanently. A nonce that
    was never used must be greater than every one that was. A request that was signed before a
    revocation makes no set: a captured one would undo the revocation.

    An address makes `API_KEYS_EVER_MAX` sets at most, and a client so many of a minute as `new_keys` counts.
    """
    now_ms = context.now_ms()
    async with context.database.writing() as tx:
        await lock_keys(tx, caller.address)
        latest = await load_latest_key(tx, caller.chain_id, caller.address, caller.nonce)
        await _note_referral(context, tx, caller)
        if latest is not None and _is_valid(context, latest):
            await _note_signing(context, tx, caller, latest.key_id)
            return _record(context, context.key_ring.credentials(latest.index))
        await _check_new_set(context, tx, caller, latest)
        if latest is not None and latest.is_active:
            await _log_revocation(context, latest, now_ms)
            await revoke_key(tx, latest.key_id, now_ms)
        generation = next_generation(
            None if latest is None else latest.index.generation, is_revoked=True
        )
        index = KeyIndex(caller.chain_id, caller.address, caller.nonce, generation)
        credentials = context.key_ring.credentials(index)
        await record_key(tx, credentials.key_id, index, now_ms)
        await _note_signing(context, tx, caller, credentials.key_id)
    if latest is not None:
        _close(context, latest.key_id)
    return _record(context, credentials)


async def _check_new_set(
    context: TradingContext, tx: Transaction, caller: L1Caller, latest: ApiKey | None
) -> None:
    """Refuse a new set of a nonce, whose latest one is given, and count one that may be made.

    A set that the operator's change of the master key ended may be replaced whatever the number: there are
    no more of these than there were active ones.
    """
    used = await load_used_keys(tx, caller.chain_id, caller.address)
    if latest is None:
        check_nonce_order(caller.nonce, used.nonce_max)
    check_signed_after(caller.signed_at_s, used.revoked_at_s)
    is_replacement = latest is not None and latest.is_active
    if used.created >= API_KEYS_EVER_MAX and not is_replacement:
        raise TooManyApiKeys(API_KEYS_EVER_MAX)
    context.new_keys.take(client_name.get())


async def derive_key(context: TradingContext, caller: L1Caller) -> CredentialsRecord:
    """Return the credentials of a nonce that were created before, or refuse."""
    async with context.database.public_reading(ReadKind.OWN) as tx:
        latest = await load_latest_key(tx, caller.chain_id, caller.address, caller.nonce)
    if latest is None or not latest.is_active:
        raise NoSuchCredentials(
            "this address and nonce have no active API key; create one with POST /auth/api-key"
        )
    if not _is_valid(context, latest):
        raise NoSuchCredentials(
            "the credentials of this address and nonce are of a master key that the operator has"
            " changed; create them again"
        )
    if caller.signed_at_s * 1000 > context.now_ms():
        async with context.database.writing() as tx:
            await _note_signing(context, tx, caller, latest.key_id)
    return _record(context, context.key_ring.credentials(latest.index))


async def list_keys(context: TradingContext, caller: L2Caller, *, with_metadata: bool) -> object:
    """Return the caller's keys, except those revoked or derived from another master key."""
    active, shared = await _load_active(context, caller), context.loop_share.begin()
    keys: list[ApiKey] = []
    for start in range(0, len(active), KEYS_PER_PART):
        part = active[start : start + KEYS_PER_PART]
        keys += await shared.run(partial(_valid_of, context, part))
    if with_metadata:
        return [_key_record(key) for key in keys]
    ids = [key.key_id for key in keys]
    return KeyList(ids) if caller.dialect == BARE_DIALECT else ids


def check_named(body: bytes, key_id: str) -> None:
    """Refuse a body that names another key than the one to be revoked, which the query names.

    Nothing else of the body counts: the route takes none.
    """
    try:
        check_depth(body)
        named = _NAMED_KEY.decode(body).api_key
    except (msgspec.MsgspecError, MalformedBody, UnicodeError):
        return
    if named is not msgspec.UNSET and named != key_id:
        raise MalformedBody("it names another apiKey than the query, which names the one to revoke")


async def revoke(context: TradingContext, caller: L2Caller, key_id: str) -> object:
    """Revoke a key of the caller's address, and close its streams."""
    async with context.database.public_reading(ReadKind.OWN) as tx:
        key = await load_key(tx, key_id)
    if key is None or key.index.address != caller.address or not key.is_active:
        raise KeyNotOwned
    now_ms = context.now_ms()
    await _log_revocation(context, key, now_ms)
    async with context.database.writing() as tx:
        is_revoked = await revoke_key(tx, key.key_id, now_ms)
    if not is_revoked:  # another request has just revoked it
        raise KeyNotOwned
    _close(context, key_id)
    await asyncio.sleep(_second_left_s(context.now_ms()))
    return "OK" if caller.dialect == BARE_DIALECT else Revocation(revoked=True)


async def _log_revocation(context: TradingContext, key: ApiKey, now_ms: int) -> None:
    """Make a revocation durable, before the transaction that revokes: the log waits for the disk."""
    if context.revocations is not None:
        await context.revocations.record(key, now_ms)


async def check_revoked(context: TradingContext, signer_id: str, key_id: str) -> None:
    """Refuse to call a key revoked that is not: the first request with this signature named another.

    An unknown key and those of other addresses are refused alike, so that nobody learns which exist.
    """
    async with context.database.public_reading(ReadKind.OWN) as tx:
        signer, key = await load_key(tx, signer_id), await load_key(tx, key_id)
    is_own = signer is not None and key is not None and key.index.address == signer.index.address
    if key is None or not is_own or key.is_active:
        raise RequestTaken


def _second_left_s(now_ms: int) -> float:
    """Return how long the present second lasts.

    The answer to a revocation is sent when its second is over, though it has its effect before: then
    whatever the client signs next is younger than the revocation, also when its time has only seconds.
    """
    return 1 - now_ms % 1000 / 1000


async def _load_active(context: TradingContext, caller: L2Caller) -> Sequence[ApiKey]:
    async with context.database.public_reading(ReadKind.OWN) as tx:
        calling = await load_key(tx, caller.key_id)
        if calling is None:
            return ()
        chain_id = calling.index.chain_id
        return await load_active_keys(tx, chain_id, caller.address, API_KEYS_EVER_MAX)


async def _note_signing(
    context: TradingContext, tx: Transaction, caller: L1Caller, key_id: str
) -> None:
    """Store the time of signing if it is ahead of the clock, and so may be after a revocation."""
    if caller.signed_at_s * 1000 > context.now_ms():
        await record_signing(tx, key_id, caller.signed_at_s)


async def _note_referral(context: TradingContext, tx: Transaction, caller: L1Caller) -> None:
    """Store who referred the wallets of an address, from now on, unless somebody did or it was itself."""
    wallets = context.wallets.of(caller.address)
    if caller.referrer is None or caller.referrer in wallets:
        return
    await record_referral(tx, wallets, caller.referrer, context.now_ms() // 1000)


def _is_valid(context: TradingContext, key: ApiKey) -> bool:
    """Return whether a key is active and derived from the present master key."""
    return key.is_active and context.key_ring.credentials(key.index).key_id == key.key_id


def _valid_of(context: TradingContext, keys: Sequence[ApiKey]) -> list[ApiKey]:
    return [key for key in keys if _is_valid(context, key)]


def _close(context: TradingContext, key_id: str) -> None:
    """Stop accepting a key that was revoked, and close its streams."""
    context.key_ring.forget(key_id)
    context.streams.revoke(key_id)


def _record(context: TradingContext, credentials: Credentials) -> CredentialsRecord:
    """Return the answer with credentials of a stored key, which this process accepts from now on."""
    context.key_ring.learn(credentials.key_id)
    return CredentialsRecord(credentials.key_id, credentials.secret, credentials.passphrase)


def _key_record(key: ApiKey) -> KeyRecord:
    return KeyRecord(
        api_key=key.key_id,
        nonce=str(key.index.nonce),
        status=key.status,
        created_at=iso_time(key.created_at_ms),
        revoked_at=None if key.revoked_at_ms is None else iso_time(key.revoked_at_ms),
    )
