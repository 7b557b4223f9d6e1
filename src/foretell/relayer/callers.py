"""Authentication of callers: an owner with its API key, or a builder with its own."""

from typing import NamedTuple

from foretell.domain.values.hexadecimal import Address
from foretell.edge.codec import AnyRequest, sent_method, sent_path
from foretell.edge.throttled_application import count_for_key
from foretell.relayer.context import RelayerContext


class RelayCaller(NamedTuple):
    """The holder of a request's API key; a builder submits for other owners."""

    address: Address
    is_builder: bool


async def owner_of(context: RelayerContext, request: AnyRequest, raw: bytes) -> RelayCaller:
    """Return the owner of the key that signed this request, or refuse."""
    path = sent_path(request)
    key_ring = context.key_ring
    caller = await key_ring.authenticate_l2(request.headers, sent_method(request), path, raw)
    if await count_for_key(request, caller.key_id, raw):
        await key_ring.check_active(caller.key_id)
    return RelayCaller(caller.address, is_builder=False)


async def caller_of(context: RelayerContext, request: AnyRequest, raw: bytes) -> RelayCaller:
    """Return the owner or the builder with the key that signed this request, or refuse."""
    dialect = context.key_ring.builder_dialect(request.headers)
    if dialect is None or f"{dialect}address" in request.headers:
        return await owner_of(context, request, raw)
    path = sent_path(request)
    key_ring = context.key_ring
    caller = await key_ring.authenticate_builder(request.headers, sent_method(request), path, raw)
    if await count_for_key(request, caller.key_id, raw):
        await key_ring.check_active(caller.key_id)
    return RelayCaller(caller.address, is_builder=True)
