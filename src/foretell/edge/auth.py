"""L1 and L2 header checks.

The header names carry a prefix: SERVICE_ is ours, existing clients send others. The prefix of a request
is the caller's dialect. The address in the headers proves nothing before its signature or its key
is verified.
"""

import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from foretell.domain.errors.families import (
    ForetellError,
    MalformedAmount,
    MalformedHex,
    MalformedSignature,
)
from foretell.domain.errors.http import (
    L1SignatureMismatch,
    MissingHeader,
    ReadonlyKeyRefused,
    RevokedKey,
    UnboundSignature,
    UnknownKey,
    WrongPassphrase,
)
from foretell.domain.values.credentials import (
    Credentials,
    KeyIndex,
    L2Signer,
    check_timestamp,
    derive_credentials,
    derive_readonly_key,
    parse_nonce,
    signature_bytes,
    signed_l1,
)
from foretell.domain.values.eip712 import SIGNATURE_BYTES, normalize_signature
from foretell.domain.values.hexadecimal import Address, parse_address
from foretell.edge.builders.keys import BUILDER, BuilderKeys
from foretell.edge.header_rules import (
    DEFAULT_RULES,
    OWN_PREFIX,
    HeaderRules,
    header_value,
    malformed_header,
)
from foretell.runtime.lru import LruCache
from foretell.store.database import Database
from foretell.store.public_reads.places import ReadKind
from foretell.store.trading.api_keys import ApiKey, load_key
from foretell.store.trading.readonly_keys import ReadonlyKey, load_readonly_key, readonly_hash

REFERRAL: Final = "referral"
READONLY_KEY: Final = "readonly_api_key"
READER_PREFIX: Final = "readonly "
KEYS_CACHED_MAX: Final = 10_000
KEY_AGE_MS_MAX: Final = 30_000
"""How long a cached key is valid: the notice of its revocation may be lost."""
UNKNOWN_AGE_MS_MAX: Final = 5_000
"""How long an id is known to be none: another process may create a key of that id."""

_KEY_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


class L1Caller(NamedTuple):
    """A wallet that signed the request itself."""

    chain_id: int
    address: Address
    nonce: int
    dialect: str
    signed_at_s: int
    referrer: Address | None = None
    """Who referred the wallet, by a header that is not signed; it counts when a key is created."""


class L2Caller(NamedTuple):
    """The holder of an API key's credentials."""

    address: Address
    key_id: str
    dialect: str


class KeyReader(NamedTuple):
    """The holder of a read-only key."""

    address: Address
    key_hash: str

    @property
    def client_id(self) -> str:
        """The name of the key among those of API keys: a stream is opened with it."""
        return reader_id(self.key_hash)


class _CachedKey(NamedTuple):
    key: ApiKey
    signer: L2Signer
    passphrase: str
    read_at_ms: int


class _CachedReader(NamedTuple):
    key: ReadonlyKey
    read_at_ms: int


class KeyRing:
    """Authenticates callers; caches a bounded number of keys for a bounded time."""

    def __init__(
        self,
        database: Database,
        master_key: bytes,
        chain_ids: Sequence[int],
        now_ms: Callable[[], int],
        rules: HeaderRules = DEFAULT_RULES,
        *,
        keys_cached_max: int = KEYS_CACHED_MAX,
    ) -> None:
        self._database = database
        self._master_key = master_key
        self._chain_ids = chain_ids
        self._now_ms = now_ms
        self._prefixes = [prefix.lower() for prefix in rules.prefixes]
        self.rules = rules
        self._cached_by_id: LruCache[str, _CachedKey] = LruCache(keys_cached_max)
        self._reader_by_hash: LruCache[str, _CachedReader] = LruCache(keys_cached_max)
        self._unknown_at_ms: LruCache[str, int] = LruCache(keys_cached_max)
        self._revocations = 0
        self.builders = BuilderKeys(database, master_key, now_ms, keys_cached_max=keys_cached_max)

    def credentials(self, index: KeyIndex) -> Credentials:
        """Return the credentials of an index; call it only for an owner that has just signed for it."""
        return derive_credentials(self._master_key, index)

    def readonly_key(self, address: Address, salt: str) -> str:
        """Return the read-only key of an address and a salt; call it only for its owner."""
        return derive_readonly_key(self._master_key, address, salt)

    async def authenticate_reader(self, headers: Mapping[str, str]) -> KeyReader | None:
        """Return the holder of a read-only key, None for headers without one, or refuse.

        Such a key is no signature: who has it reads all that it allows.
        """
        dialect = next((each for each in self._prefixes if each + READONLY_KEY in headers), None)
        if dialect is None or dialect + "api_key" in headers:
            return None
        key = header_value(headers, dialect, READONLY_KEY)
        return await self.reader_of(_address(headers, dialect), key)

    async def reader_of(self, address: Address, key: str) -> KeyReader:
        """Return the holder of a read-only key of an address, or refuse."""
        if not await self.is_readonly_key(address, key):
            raise UnknownKey("the address has no such read-only key")
        return KeyReader(address, readonly_hash(key))

    async def is_readonly_key(self, address: Address, key: str) -> bool:
        """Return whether an address has a read-only key, of the present master key."""
        if _KEY_ID.match(key) is None:
            return False
        stored = await self._load_reader(readonly_hash(key))
        if stored is None or stored.address != address:
            return False
        return hmac.compare_digest(self.readonly_key(address, stored.salt), key)

    def learn(self, key_id: str) -> None:
        """Accept a key, or a read-only one by its hash, that was just created; a request may have named it before."""
        self._unknown_at_ms.discard(key_id)

    def forget(self, key_id: str) -> None:
        """Drop a revoked key, or a deleted read-only one by its hash, from the cache."""
        self._revocations += 1
        self._cached_by_id.discard(key_id)
        self._reader_by_hash.discard(key_id)

    def forget_all(self) -> None:
        """Empty the cache: another process may have revoked keys."""
        self._revocations += 1
        self._cached_by_id.clear()
        self._reader_by_hash.clear()
        self.builders.forget_all()

    def authenticate_l1(self, headers: Mapping[str, str]) -> L1Caller:
        """Return the wallet that signed the headers, or refuse."""
        dialect = self._dialect(headers)
        address = _address(headers, dialect)
        timestamp = header_value(headers, dialect, "timestamp")
        check_timestamp(timestamp, self._now_ms() // 1000)
        nonce = _nonce(headers, dialect)
        signature = _l1_signature(headers, dialect)
        referrer = _address(headers, dialect, REFERRAL) if dialect + REFERRAL in headers else None
        for chain_id in self._chain_ids:
            bound, unbound = self.rules.bound_domain(chain_id), self.rules.unbound_domain(chain_id)
            if bound is not None and signed_l1(bound, address, timestamp, nonce, signature):
                return L1Caller(chain_id, address, nonce, dialect, int(timestamp), referrer)
            if signed_l1(unbound, address, timestamp, nonce, signature):
                if not self.rules.accepts_unbound_l1:
                    raise UnboundSignature(str(self.rules.l1_contract))
                return L1Caller(chain_id, address, nonce, dialect, int(timestamp), referrer)
        raise L1SignatureMismatch(address)

    async def authenticate_l2(
        self, headers: Mapping[str, str], method: str, path: str, body: bytes
    ) -> L2Caller:
        """Return the holder of the key that signed exactly this request, or refuse."""
        dialect = self._dialect(headers)
        cached = await self._load(_key_id(headers, dialect))
        return self._check(cached, dialect, headers, (method, path, body))

    def authenticate_l2_cached(
        self, headers: Mapping[str, str], method: str, path: str, body: bytes
    ) -> L2Caller | None:
        """Return what `authenticate_l2` does, without a coroutine; None if the key is not in the cache."""
        dialect = self._dialect(headers)
        cached = self._fresh(_key_id(headers, dialect))
        if cached is None:
            return None
        return self._check(cached, dialect, headers, (method, path, body))

    async def check_key(self, headers: Mapping[str, str]) -> None:
        """Refuse headers without a known key, its address and passphrase, and a present time.

        What they claim is not proven before the whole request is there. Strangers are refused by this
        before the body of their request is read.
        """
        dialect = self._dialect(headers)
        cached = await self._load(_key_id(headers, dialect))
        self._check_claims(cached, dialect, headers)

    def names_cached_key(self, headers: Mapping[str, str]) -> bool:
        """Return whether `check_key` lets the headers pass without a look into the database."""
        try:
            dialect = self._dialect(headers)
            cached = self._fresh(_key_id(headers, dialect))
            if cached is not None:
                self._check_claims(cached, dialect, headers)
        except ForetellError:
            return False
        return cached is not None

    def _check(
        self,
        cached: _CachedKey,
        dialect: str,
        headers: Mapping[str, str],
        request: tuple[str, str, bytes],
    ) -> L2Caller:
        """Return the key's holder when the headers are signed by it for this request."""
        timestamp = self._check_claims(cached, dialect, headers)
        signature = header_value(headers, dialect, "signature")
        cached.signer.check(signature, timestamp, *request)
        return L2Caller(cached.key.index.address, cached.key.key_id, dialect)

    def _check_claims(self, cached: _CachedKey, dialect: str, headers: Mapping[str, str]) -> str:
        """Return the time of signing when everything but the signature is right, or refuse."""
        if cached.key.index.address != _address(headers, dialect):
            raise UnknownKey("the API key does not belong to this address")
        timestamp = header_value(headers, dialect, "timestamp")
        check_timestamp(timestamp, self._now_ms() // 1000)
        passphrase = header_value(headers, dialect, "passphrase")
        if not hmac.compare_digest(passphrase.encode(), cached.passphrase.encode()):
            raise WrongPassphrase("the passphrase does not belong to the API key")
        return timestamp

    def key_id_of(self, headers: Mapping[str, str]) -> str:
        """Return the id of the key that an L2 request names as its signer; unverified."""
        return _key_id(headers, self._dialect(headers))

    def signature_of(self, headers: Mapping[str, str]) -> str:
        """Return the signature of an L2 request in hex, however the header spells it; unverified."""
        return signature_bytes(header_value(headers, self._dialect(headers), "signature")).hex()

    def signed_at_of(self, headers: Mapping[str, str]) -> int:
        """Return when an authenticated L2 request was signed, in seconds."""
        return int(header_value(headers, self._dialect(headers), "timestamp"))

    async def check_active(self, key_id: str) -> None:
        """Refuse a key that was revoked after its request was verified."""
        await self._load(key_id)

    async def address_of(self, key_id: str) -> Address:
        """Return the address of an active key, or refuse."""
        return (await self._load(key_id)).key.index.address

    def builder_dialect(self, headers: Mapping[str, str]) -> str | None:
        """Return the prefix of a builder's headers, or None when there are none."""
        return next((each for each in self._prefixes if f"{each}{BUILDER}api_key" in headers), None)

    async def authenticate_credentials(self, key_id: str, secret: str, passphrase: str) -> L2Caller:
        """Return the holder of these credentials, which a private stream's subscription carries."""
        cached = await self._load(key_id)
        wanted = self.credentials(cached.key.index)
        is_secret = hmac.compare_digest(secret.encode(), wanted.secret.encode())
        is_passphrase = hmac.compare_digest(passphrase.encode(), wanted.passphrase.encode())
        if not (is_secret and is_passphrase):
            raise WrongPassphrase("the secret or the passphrase does not belong to the API key")
        return L2Caller(cached.key.index.address, key_id, OWN_PREFIX.lower())

    def _fresh(self, key_id: str) -> _CachedKey | None:
        """Return a key from the cache, unless it was read too long ago."""
        cached = self._cached_by_id.get(key_id)
        if cached is not None and 0 <= self._now_ms() - cached.read_at_ms < KEY_AGE_MS_MAX:
            return cached
        return None

    async def _load(self, key_id: str) -> _CachedKey:
        """Return an active key, from the cache or the database, or refuse.

        A key whose revocation arrives during the read is not cached: the row was read before it.
        """
        cached = self._fresh(key_id)
        if cached is not None:
            return cached
        self._cached_by_id.discard(key_id)
        now_ms = self._now_ms()
        if _KEY_ID.match(key_id) is None or self._is_unknown(key_id, now_ms):
            raise UnknownKey("the API key does not exist")
        revocations = self._revocations
        async with self._database.public_reading(ReadKind.KEY) as tx:
            key = await load_key(tx, key_id)
        if key is None:
            self._unknown_at_ms.put(key_id, now_ms)
            raise UnknownKey("the API key does not exist")
        if not key.is_active:
            raise RevokedKey("the API key was revoked")
        derived = self.credentials(key.index)
        cached = _CachedKey(key, L2Signer(derived.secret), derived.passphrase, now_ms)
        if revocations == self._revocations:
            self._cached_by_id.put(key_id, cached)
        return cached

    async def _load_reader(self, key_hash: str) -> ReadonlyKey | None:
        """Return an active read-only key, from the cache or the database, as `_load` does."""
        now_ms = self._now_ms()
        cached = self._reader_by_hash.get(key_hash)
        if cached is not None and 0 <= now_ms - cached.read_at_ms < KEY_AGE_MS_MAX:
            return cached.key
        if self._is_unknown(key_hash, now_ms):
            return None
        revocations = self._revocations
        async with self._database.public_reading(ReadKind.KEY) as tx:
            key = await load_readonly_key(tx, key_hash)
        if key is None:
            self._unknown_at_ms.put(key_hash, now_ms)
        elif key.is_active and revocations == self._revocations:
            self._reader_by_hash.put(key_hash, _CachedReader(key, now_ms))
        return key if key is not None and key.is_active else None

    def _is_unknown(self, key_id: str, now_ms: int) -> bool:
        """Return whether the database had no such key a short time ago: guesses cost no read each."""
        read_at_ms = self._unknown_at_ms.get(key_id)
        return read_at_ms is not None and 0 <= now_ms - read_at_ms < UNKNOWN_AGE_MS_MAX

    def _dialect(self, headers: Mapping[str, str]) -> str:
        for prefix in self._prefixes:
            if f"{prefix}address" in headers:
                return prefix
        raise MissingHeader(f"{OWN_PREFIX}ADDRESS")


def reader_id(key_hash: str) -> str:
    """Return the name of a read-only key among those of API keys."""
    return READER_PREFIX + key_hash


def _key_id(headers: Mapping[str, str], dialect: str) -> str:
    """Return the id of the API key that signed a request; a read-only key is none."""
    if dialect + "api_key" not in headers and dialect + READONLY_KEY in headers:
        raise ReadonlyKeyRefused
    return header_value(headers, dialect, "api_key")


def _address(headers: Mapping[str, str], dialect: str, name: str = "address") -> Address:
    try:
        return parse_address(header_value(headers, dialect, name))
    except MalformedHex as error:
        raise malformed_header(dialect, name) from error


def _nonce(headers: Mapping[str, str], dialect: str) -> int:
    try:
        return parse_nonce(header_value(headers, dialect, "nonce"))
    except MalformedAmount as error:
        raise malformed_header(dialect, "nonce") from error


def _l1_signature(headers: Mapping[str, str], dialect: str) -> bytes:
    """Return the signature from hex digits, with or without 0x."""
    text = header_value(headers, dialect, "signature")
    digits = text[2:] if text[:2].lower() == "0x" else text
    try:
        return normalize_signature(bytes.fromhex(digits[: 2 * SIGNATURE_BYTES + 1]))
    except (ValueError, MalformedSignature) as error:
        raise malformed_header(dialect, "signature") from error
