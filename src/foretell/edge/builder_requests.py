"""Authentication of builders by their headers, alone or beside those of an order's owner.

They are signed as at level 2, with a builder's key or with any API key, and carry no address.
"""

from collections.abc import Mapping

from foretell.domain.errors.builders import BuilderHeadersRefused
from foretell.domain.errors.families import Unauthenticated
from foretell.domain.errors.http import MissingHeader
from foretell.domain.values.hexadecimal import Bytes32
from foretell.edge.auth import KeyRing, L2Caller
from foretell.edge.builders.keys import BUILDER, BuilderHeaders, builder_code
from foretell.edge.header_rules import OWN_PREFIX, header_value

_SIGNED = ("api_key", "timestamp", "passphrase", "signature")


def is_of_builder_alone(key_ring: KeyRing, headers: Mapping[str, str]) -> bool:
    """Return whether headers are a builder's, with none of an owner beside them."""
    dialect = key_ring.builder_dialect(headers)
    return dialect is not None and f"{dialect}address" not in headers


async def check_builder_key(key_ring: KeyRing, headers: Mapping[str, str]) -> None:
    """Refuse a builder's headers without a known key, as `KeyRing.check_key` does."""
    named = _builder_headers(key_ring, headers)
    builder = await key_ring.builders.find(named.key_id)
    if builder is None:
        await key_ring.check_key(await _plain(key_ring, named))
    else:
        key_ring.builders.check_claims(builder, named)


async def check_builder_active(key_ring: KeyRing, key_id: str) -> None:
    """Refuse a builder's key that was deleted after its request was verified."""
    if await key_ring.builders.find(key_id) is None:
        await key_ring.check_active(key_id)


async def authenticate_builder(
    key_ring: KeyRing, headers: Mapping[str, str], method: str, path: str, body: bytes
) -> L2Caller:
    """Return the holder of the key that signed a builder's headers for exactly this request, or refuse."""
    named = _builder_headers(key_ring, headers)
    builder = await key_ring.builders.find(named.key_id)
    if builder is None:
        plain = await _plain(key_ring, named)
        return await key_ring.authenticate_l2(plain, method, path, body)
    key_ring.builders.check(builder, named, method, path, body)
    return L2Caller(builder.address, builder.key_id, named.dialect)


async def attributing_builder(
    key_ring: KeyRing, headers: Mapping[str, str], method: str, path: str, body: bytes
) -> L2Caller | None:
    """Return the builder that signed beside the owner, None without one, or refuse.

    Its time of signing is judged here, so call it on arrival, before the owner's request waits for its turn.
    """
    if key_ring.builder_dialect(headers) is None:
        return None
    try:
        return await authenticate_builder(key_ring, headers, method, path, body)
    except Unauthenticated as refusal:
        raise BuilderHeadersRefused(refusal.message) from refusal


async def check_still_attributing(key_ring: KeyRing, builder: L2Caller | None) -> None:
    """Refuse a builder whose key was deleted while the owner's request waited."""
    if builder is None:
        return
    try:
        await check_builder_active(key_ring, builder.key_id)
    except Unauthenticated as refusal:
        raise BuilderHeadersRefused(refusal.message) from refusal


def code_of(builder: L2Caller | None) -> Bytes32 | None:
    """Return the code of the builder's orders, None without one."""
    return None if builder is None else builder_code(builder.address)


def _builder_headers(key_ring: KeyRing, headers: Mapping[str, str]) -> BuilderHeaders:
    dialect = key_ring.builder_dialect(headers)
    if dialect is None:
        raise MissingHeader(f"{OWN_PREFIX}{BUILDER.upper()}API_KEY")
    return BuilderHeaders(
        dialect, *(header_value(headers, dialect, BUILDER + name) for name in _SIGNED)
    )


async def _plain(key_ring: KeyRing, named: BuilderHeaders) -> dict[str, str]:
    """Return a builder's headers as those of the owner of an API key, with its address."""
    dialect = named.dialect
    return {
        f"{dialect}api_key": named.key_id,
        f"{dialect}timestamp": named.timestamp,
        f"{dialect}passphrase": named.passphrase,
        f"{dialect}signature": named.signature,
        f"{dialect}address": await key_ring.address_of(named.key_id),
    }
