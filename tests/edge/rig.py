"""API keys of two wallets, and the headers that their owners send."""

import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

from tests.rigs.values import CHAIN_ID, NOW_MS, NOW_S, a_key, an_address

from foretell.domain.values.credentials import (
    Credentials,
    KeyIndex,
    L2Signer,
    derive_credentials,
    l1_digest,
)
from foretell.domain.values.eip712 import sign_digest
from foretell.edge.auth import KeyRing, L2Caller
from foretell.store.database import Database, Transaction
from foretell.store.public_reads.places import ReadKind
from foretell.store.trading.api_keys import record_key, revoke_key

MASTER_KEY = bytes(range(32))
ALICE, BOB = an_address("alice"), an_address("bob")
BODY = b'{"orderID":"it\'s"}'

Headers = dict[str, str]


def credentials_of(name: str, nonce: int = 0) -> Credentials:
    return derive_credentials(MASTER_KEY, KeyIndex(CHAIN_ID, an_address(name), nonce))


ALICES, BOBS, REVOKED = credentials_of("alice"), credentials_of("bob"), credentials_of("alice", 1)
UNKNOWN_KEY = str(uuid.UUID(int=7, version=4))


class RacingDatabase(Database):
    """A database that runs an action right after a reader has read."""

    async def nothing(self) -> None:
        """Do nothing."""

    after_reading: Callable[[], Awaitable[None]] | None = None

    @contextlib.asynccontextmanager
    async def public_reading(  # type: ignore[explicit-override]
        self, kind: ReadKind = ReadKind.LISTING
    ) -> AsyncIterator[Transaction]:
        async with super().public_reading(kind) as tx:
            yield tx
        act, self.after_reading = self.after_reading, None
        await (act or self.nothing)()


def l2_headers(prefix: str = "service_", **changes: str) -> Headers:
    """Return alice's headers for POST /order with BODY; a change to an empty text removes one."""
    timestamp = changes.pop("signed_at", str(NOW_S))
    credentials = changes.pop("secret", ALICES.secret)
    signature = L2Signer(credentials).sign(timestamp, "POST", "/order", BODY)
    headers = {
        "address": ALICE,
        "signature": signature,
        "timestamp": timestamp,
        "api_key": ALICES.key_id,
        "passphrase": ALICES.passphrase,
    } | changes
    return {prefix + name: value for name, value in headers.items()}


def l1_headers(prefix: str = "service_", chain_id: int = CHAIN_ID, **changes: str) -> Headers:
    """Return the headers that alice sends for her credentials of nonce 0."""
    timestamp, nonce = changes.pop("signed_at", str(NOW_S)), changes.pop("signed_nonce", "0")
    signature = sign_digest(l1_digest(chain_id, ALICE, timestamp, int(nonce)), a_key("alice"))
    headers = {
        "address": ALICE,
        "signature": "0x" + signature.hex(),
        "timestamp": timestamp,
        "nonce": nonce,
    } | changes
    return {prefix + name: value for name, value in headers.items()}


async def fill(path: Path) -> None:
    async with Database(f"sqlite+aiosqlite:///{path}") as database, database.writing() as tx:
        await record_key(tx, ALICES.key_id, KeyIndex(CHAIN_ID, ALICE, 0), NOW_MS)
        await record_key(tx, REVOKED.key_id, KeyIndex(CHAIN_ID, ALICE, 1), NOW_MS)
        await record_key(tx, BOBS.key_id, KeyIndex(CHAIN_ID, BOB, 0), NOW_MS)
        await revoke_key(tx, REVOKED.key_id, NOW_MS)


async def check(ring: KeyRing, headers: Mapping[str, str]) -> L2Caller:
    return await ring.authenticate_l2(headers, "POST", "/order", BODY)
