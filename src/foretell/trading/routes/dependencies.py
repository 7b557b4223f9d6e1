"""Types that the routes share: the context that they are given, and their caller."""

from typing import NamedTuple

from litestar.di import NamedDependency

from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.edge import builder_requests
from foretell.edge.auth import L2Caller
from foretell.edge.codec import (
    BODY_BYTES_MAX,
    AnyRequest,
    JsonResponse,
    read_body,
    sent_method,
    sent_path,
)
from foretell.edge.idempotency import answer_keyed, response_of
from foretell.edge.signed_requests import Act, signed_identity
from foretell.edge.throttled_application import count_for_account, readers_of
from foretell.store.public_reads.places import ReadKind
from foretell.store.signed_requests import RequestIdentity, StoredAnswer
from foretell.store.write_places import writing_for
from foretell.trading.context import TradingContext

Context = NamedDependency[TradingContext]


class SignedRequest(NamedTuple):
    """The caller of a private route, and the body that it signed."""

    caller: L2Caller
    body: bytes


class ReadingKey(NamedTuple):
    """A key that reads, and its address."""

    address: Address
    key_id: str


class BroughtRequest(NamedTuple):
    """A request of an owner, and the code of the builder that brought it, None if nobody did."""

    signed: SignedRequest
    builder: Bytes32 | None


async def authenticate(
    request: AnyRequest, context: TradingContext, bytes_max: int = BODY_BYTES_MAX
) -> SignedRequest:
    """Return the caller that signed this request with an API key when it is its turn, or refuse.

    The signed path is the one that was sent, below the prefix that the API is mounted under. The time of
    the signature is checked on arrival; a key may be revoked while its request waits. A body is read only
    for a caller that names a key and its passphrase.
    """
    signed = await _authenticated_on_arrival(request, context, bytes_max)
    await _wait_for_turn(request, context, signed)
    return signed


async def authenticate_brought(request: AnyRequest, context: TradingContext) -> BroughtRequest:
    """Return the owner that signed this request, and the builder beside it, when it is its turn, or refuse.

    Of both the time of signing is checked on arrival.
    """
    key_ring = context.key_ring
    signed = await _authenticated_on_arrival(request, context)
    sent = sent_method(request), sent_path(request), signed.body
    builder = await builder_requests.attributing_builder(key_ring, request.headers, *sent)
    if await _wait_for_turn(request, context, signed):
        await builder_requests.check_still_attributing(key_ring, builder)
    return BroughtRequest(signed, builder_requests.code_of(builder))


async def _authenticated_on_arrival(
    request: AnyRequest, context: TradingContext, bytes_max: int = BODY_BYTES_MAX
) -> SignedRequest:
    await context.key_ring.check_key(request.headers)
    body = await read_body(request, bytes_max, is_known=True)
    path = sent_path(request)
    caller = await context.key_ring.authenticate_l2(
        request.headers, sent_method(request), path, body
    )
    return SignedRequest(caller, body)


async def _wait_for_turn(
    request: AnyRequest, context: TradingContext, signed: SignedRequest
) -> bool:
    """Wait for the turn of an owner's request, and return whether it waited; its key may be revoked since."""
    has_waited = await count_for_account(request, signed.caller.address, signed.body)
    if has_waited:
        await context.key_ring.check_active(signed.caller.key_id)
    return has_waited


async def authenticate_builder(request: AnyRequest, context: TradingContext) -> SignedRequest:
    """Return the builder whose headers alone sign this request when it is its turn, or refuse."""
    key_ring = context.key_ring
    await builder_requests.check_builder_key(key_ring, request.headers)
    body = await read_body(request, is_known=True)
    sent = sent_method(request), sent_path(request), body
    caller = await builder_requests.authenticate_builder(key_ring, request.headers, *sent)
    if await count_for_account(request, caller.address, body):
        await builder_requests.check_builder_active(key_ring, caller.key_id)
    return SignedRequest(caller, body)


async def authenticate_reader(request: AnyRequest, context: TradingContext) -> Address:
    """Return the address whose API key signed a request, or whose read-only key is in its headers."""
    return (await authenticate_reading_key(request, context)).address


async def authenticate_reading_key(request: AnyRequest, context: TradingContext) -> ReadingKey:
    """Return the key of a request that reads: an API key that signed it, or a read-only key in its headers."""
    reader = await context.key_ring.authenticate_reader(request.headers)
    if reader is None:
        caller, _ = await authenticate(request, context)
        return ReadingKey(caller.address, caller.key_id)
    await count_for_account(request, readers_of(reader.address), b"")
    return ReadingKey(reader.address, reader.client_id)


async def answer_named(
    request: AnyRequest, context: TradingContext, signed: SignedRequest, act: Act
) -> JsonResponse:
    """Return the answer to a request, carried out unless one with its idempotency key was before."""
    client = f"trading {signed.caller.address}"
    with writing_for(signed.caller.address):
        return await answer_keyed(request, context.signed_requests, client, signed.body, act)


async def answer_once(
    request: AnyRequest, context: TradingContext, signed: SignedRequest, act: Act
) -> JsonResponse:
    """Return the answer to an authenticated request, carried out unless it was sent before."""

    async def answer() -> StoredAnswer:
        return await context.signed_requests.answer(_identity(request, context), act)

    return await answer_named(request, context, signed, answer)


async def find_first_answer(request: AnyRequest, context: TradingContext) -> JsonResponse | None:
    """Return the answer that a request got before, or None; the key that signed it may be revoked."""
    signature = _identity(request, context).signature
    answer = await context.signed_requests.find(signature, ReadKind.LISTING)
    return None if answer is None else response_of(answer)


def _identity(request: AnyRequest, context: TradingContext) -> RequestIdentity:
    """Return the identity of a request; the signature has its route, so no other finds its answer."""
    signature = context.key_ring.signature_of(request.headers)
    signed_at_s = context.key_ring.signed_at_of(request.headers)
    return signed_identity(f"{sent_method(request)} {sent_path(request)} {signature}", signed_at_s)
