"""Builders' keys: what signs the builder's headers of a request.

A builder is who brings orders and transactions of others. Its key attributes them to it and reads its own
trades; it never trades, cancels or reads balances. The secret is derived from the master key under labels
of its own, so that it is no API key's.
"""

import hmac
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from foretell.domain.errors.http import RevokedKey, WrongPassphrase
from foretell.domain.values.credentials import (
    Credentials,
    L2Signer,
    check_timestamp,
    derive_builder_credentials,
)
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.runtime.lru import LruCache
from foretell.store.database import Database
from foretell.store.public_reads.places import ReadKind
from foretell.store.trading.builder_keys import load_builder_key

BUILDER: Final = "builder_"
"""Follows the prefix in the header names of a builder."""
KEYS_CACHED_MAX: Final = 10_000
KEY_AGE_MS_MAX: Final = 30_000
"""How long a cached key is valid: the notice of its deletion may be lost."""
UNKNOWN_AGE_MS_MAX: Final = 5_000
"""How long an id is known to be no builder's key."""

_KEY_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


class BuilderHeaders(NamedTuple):
    """A builder's headers; what they claim is not proven."""

    dialect: str
    key_id: str
    timestamp: str
    passphrase: str
    signature: str


class KnownBuilder(NamedTuple):
    """An active builder's key, and what checks its signatures."""

    key_id: str
    address: Address
    signer: L2Signer
    passphrase: str
    read_at_ms: int


def builder_code(address: Address) -> Bytes32:
    """Return the code of the orders that an address brings: the address, left-padded to 32 bytes."""
    return Bytes32("0x" + address[2:].lower().rjust(64, "0"))


def address_of_code(code: Bytes32) -> Address | None:
    """Return the address whose code this is, or None when it is of none."""
    address = Address(f"0x{code[-40:]}")
    return address if builder_code(address) == code else None


class BuilderKeys:
    """Finds builders' keys; caches a bounded number of them for a bounded time."""

    def __init__(
        self,
        database: Database,
        master_key: bytes,
        now_ms: Callable[[], int],
        *,
        keys_cached_max: int = KEYS_CACHED_MAX,
    ) -> None:
        self._database = database
        self._master_key = master_key
        self._now_ms = now_ms
        self._known_by_id: LruCache[str, KnownBuilder] = LruCache(keys_cached_max)
        self._unknown_at_ms: LruCache[str, int] = LruCache(keys_cached_max)
        self._deletions = 0

    def credentials(self, address: Address, salt: str) -> Credentials:
        """Return a builder's credentials; call it only for the address that has just signed for them."""
        return derive_builder_credentials(self._master_key, address, salt)

    def learn(self, key_id: str) -> None:
        """Accept a key that was just created, though a request may have named it before."""
        self._unknown_at_ms.discard(key_id)

    def forget_all(self) -> None:
        """Empty the cache: keys were deleted, here or by another process."""
        self._deletions += 1
        self._known_by_id.clear()

    async def find(self, key_id: str) -> KnownBuilder | None:
        """Return an active key, None if the id is no builder's, or refuse a deleted one.

        A key whose deletion arrives during the read is not cached: the row was read before it.
        """
        now_ms = self._now_ms()
        known = self._known_by_id.get(key_id)
        if known is not None and 0 <= now_ms - known.read_at_ms < KEY_AGE_MS_MAX:
            return known
        if _KEY_ID.match(key_id) is None or self._is_unknown(key_id, now_ms):
            return None
        deletions = self._deletions
        async with self._database.public_reading(ReadKind.KEY) as tx:
            key = await load_builder_key(tx, key_id)
        if key is None:
            self._unknown_at_ms.put(key_id, now_ms)
            return None
        if not key.is_active:
            raise RevokedKey("the builder's key was deleted")
        derived = self.credentials(key.address, key.salt)
        if derived.key_id != key_id:
            raise RevokedKey("the builder's key is of a master key that the operator has changed")
        known = KnownBuilder(
            key_id, key.address, L2Signer(derived.secret), derived.passphrase, now_ms
        )
        if deletions == self._deletions:
            self._known_by_id.put(key_id, known)
        return known

    def check_claims(self, builder: KnownBuilder, headers: BuilderHeaders) -> None:
        """Refuse headers with another passphrase, or with a time that is not close to the present."""
        check_timestamp(headers.timestamp, self._now_ms() // 1000)
        if not hmac.compare_digest(headers.passphrase.encode(), builder.passphrase.encode()):
            raise WrongPassphrase("the passphrase does not belong to the builder's key")

    def check(
        self, builder: KnownBuilder, headers: BuilderHeaders, method: str, path: str, body: bytes
    ) -> None:
        """Refuse headers that the builder's key did not sign for this request."""
        self.check_claims(builder, headers)
        builder.signer.check(headers.signature, headers.timestamp, method, path, body)

    def _is_unknown(self, key_id: str, now_ms: int) -> bool:
        """Return whether the database had no such key a short time ago: guesses cost no read each."""
        read_at_ms = self._unknown_at_ms.get(key_id)
        return read_at_ms is not None and 0 <= now_ms - read_at_ms < UNKNOWN_AGE_MS_MAX
