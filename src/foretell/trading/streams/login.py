"""Logins on the user channel: with a set of credentials, or with a read-only key."""

from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.http import UnknownKey
from foretell.domain.values.hexadecimal import parse_address
from foretell.edge.auth import READER_PREFIX, KeyRing, L2Caller
from foretell.edge.header_rules import OWN_PREFIX
from foretell.edge.throttled_application import readers_of
from foretell.store.database import Transaction
from foretell.store.trading.api_keys import load_key
from foretell.store.trading.readonly_keys import load_readonly_key
from foretell.trading.streams.requests import StreamAuth


async def authenticate_stream(key_ring: KeyRing, auth: StreamAuth) -> L2Caller:
    """Return the holder of credentials, or of a read-only key, which reads as much of a stream; or refuse."""
    if not auth.readonly_api_key or auth.key_id:
        return await key_ring.authenticate_credentials(auth.key_id, auth.secret, auth.passphrase)
    try:
        address = parse_address(auth.address)
    except MalformedHex as error:
        raise UnknownKey("a read-only key needs the address of its owner") from error
    reader = await key_ring.reader_of(address, auth.readonly_api_key)
    return L2Caller(reader.address, reader.client_id, OWN_PREFIX.lower())


def client_of(login: L2Caller) -> str:
    """Return the client that a stream counts for: the account, or all its read-only keys together."""
    is_reader = login.key_id.startswith(READER_PREFIX)
    return readers_of(login.address) if is_reader else login.address


async def is_key_active(tx: Transaction, key_id: str) -> bool:
    """Return whether the key of a login is still accepted."""
    if key_id.startswith(READER_PREFIX):
        reader = await load_readonly_key(tx, key_id.removeprefix(READER_PREFIX))
        return reader is not None and reader.is_active
    key = await load_key(tx, key_id)
    return key is not None and key.is_active
