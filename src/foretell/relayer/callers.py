"""Authentication of callers: an owner with its API key, or a builder with its own."""

from typing import NamedTuple

from foretell.domain.values.hexadecimal import Address
from foretell.domain.values.origins import READING_METHODS
from foretell.edge.builder_requests import (
    authenticate_builder,
    check_builder_active,
    check_builder_key,
    is_of_builder_alone,
)
from foretell.edge.codec import AnyRequest, read_body, sent_method, sent_path
from foretell.edge.throttled_application import count_for_account
from foretell.relayer.body import BODY_BYTES_MAX
from foretell.relayer.context import RelayerContext


class RelayCaller(NamedTuple):
    """The holder of a request's API key; a builder submits for other owners."""

    address: Address
    is_builder: bool


class SignedSubmission(NamedTuple):
    """The caller of a route, and the body that it signed."""

    caller: RelayCaller
    body: bytes


def is_signed(request: AnyRequest) -> bool:
    """Return whether a request names an API key, of an owner or of a builder."""
    return any(name.endswith("_api_key") for name in request.headers)


async def owner_of(context: RelayerContext, request: AnyRequest) -> SignedSubmission:
    """Return the owner of the key that signed this request, or refuse; strangers before the body is read."""
    key_ring = context.key_ring
    await key_ring.check_key(request.headers)
    body = await _body(request)
    path = sent_path(request)
    caller = await key_ring.authenticate_l2(request.headers, sent_method(request), path, body)
    if await count_for_account(request, caller.address, body):
        await key_ring.check_active(caller.key_id)
    return SignedSubmission(RelayCaller(caller.address, is_builder=False), body)


async def caller_of(context: RelayerContext, request: AnyRequest) -> SignedSubmission:
    """Return the owner or the builder with the key that signed this request, or refuse."""
    key_ring = context.key_ring
    if not is_of_builder_alone(key_ring, request.headers):
        return await owner_of(context, request)
    await check_builder_key(key_ring, request.headers)
    body = await _body(request)
    method, path = sent_method(request), sent_path(request)
    caller = await authenticate_builder(key_ring, request.headers, method, path, body)
    if await count_for_account(request, caller.address, body):
        await check_builder_active(key_ring, caller.key_id)
    return SignedSubmission(RelayCaller(caller.address, is_builder=True), body)


async def _body(request: AnyRequest) -> bytes:
    """Return the signed body: none of a request that reads; its key was checked."""
    if request.method in READING_METHODS:
        return b""
    return await read_body(request, BODY_BYTES_MAX, is_known=True)
