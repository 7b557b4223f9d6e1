"""Acceptance: begins the preparation of a signed payload.

Everything that the upload alone shows is checked before the answer, and a refusal leaves the challenge unchanged. The
number of preparations is looked at first, because parsing a payload and decoding images cost most.
"""

import contextlib

from foretell.creation.chain_checks.terms import check_asked
from foretell.creation.context import CreationContext
from foretell.creation.messages import parse_envelope
from foretell.creation.prepare import ids_of, takeable_claims
from foretell.creation.uploads import Upload
from foretell.domain.creation.image_fields import assign_images, places_of
from foretell.domain.creation.payload import Payload, parse_payload, payload_hash
from foretell.domain.creation.preparation_bounds import (
    PreparationBounds,
    PreparationUses,
    check_preparations,
    check_unpaid,
)
from foretell.domain.creation.request import (
    Envelope,
    RequestStatus,
    RequestTrigger,
    check_envelope,
)
from foretell.domain.errors.creation import (
    AuthInvalid,
    ChallengeUsed,
    ImagesBusy,
    PreparationsBusy,
    RequestNotFound,
    TooManyPreparations,
)
from foretell.domain.errors.families import FieldProblem, InvalidFields, Unavailable, Upstream
from foretell.domain.errors.http import TooManyRequests
from foretell.domain.errors.storage import ReadsBusy
from foretell.store.creation.preparations import load_preparation_uses, load_unpaid_uses
from foretell.store.creation.requests import (
    CreationRequest,
    load_request,
    move_request,
    record_images,
)
from foretell.store.database import Transaction
from foretell.store.failures import after_effect
from foretell.store.public_reads.places import ReadKind


async def accept(context: CreationContext, upload: Upload, source: str) -> CreationRequest:
    """Return the request that the upload starts or has started before.

    `source` is the client's address, as for the rate limits. Raises TooManyPreparations, PreparationsBusy
    and TooManyUnpaid.
    """
    envelope, now_ms = parse_envelope(upload.auth), context.now_ms()
    async with context.database.public_reading() as tx:
        request = await _load(tx, envelope.request_id)
        uses = await load_preparation_uses(tx, source, request.creator)
        unpaid = await load_unpaid_uses(tx, source, request.creator, now_ms)
    if request.status is not RequestStatus.AUTH_PENDING:
        return _same_request(request, envelope, upload)
    check_envelope(request.challenge, envelope, payload_hash(upload.payload), now_ms)
    check_unpaid(unpaid, now_ms)
    bounds = await _admitting_bounds(context, request, uses, len(upload.payload))
    await context.blobs.check_room()
    payload = parse_payload(upload.payload, context.rules, now_ms)
    _check_signed(payload, request)
    ids = ids_of(context, payload)
    content_by_field = await _normalized(context, upload, payload, source)
    with contextlib.suppress(Upstream):  # without the chain, the preparation decides
        await check_asked(context, payload, ids)
    size_bytes = len(upload.payload) + sum(map(len, content_by_field.values()))
    async with context.database.writing() as tx:
        await takeable_claims(tx, request, payload, ids, now_ms)
        uses = await load_preparation_uses(tx, source, request.creator)
        check_preparations(bounds, uses, size_bytes, _since_ms(context))
        has_moved = await move_request(
            tx,
            request,
            RequestTrigger.PREPARE,
            now_ms,
            payload=upload.payload,
            signature=envelope.signature.hex(),
            source=source,
            images_hash=upload.images_hash,
        )
        if has_moved:
            await record_images(tx, request.request_id, content_by_field)
    with after_effect():
        async with context.database.public_reading(ReadKind.OWN) as tx:
            moved = await _load(tx, envelope.request_id)
    return _same_request(moved, envelope, upload)


async def _load(tx: Transaction, request_id: str) -> CreationRequest:
    request = await load_request(tx, request_id)
    if request is None:
        raise RequestNotFound(request_id)
    return request


async def _admitting_bounds(
    context: CreationContext, request: CreationRequest, uses: PreparationUses, size_bytes: int
) -> PreparationBounds:
    """Return the bounds within which a preparation begins: the wider ones if its creator needs and may have them."""
    options, since_ms = context.options, _since_ms(context)
    try:
        check_preparations(options.preparations, uses, size_bytes, since_ms)
    except (TooManyPreparations, PreparationsBusy):
        if not await _has_whitelist(context, request):
            raise
        check_preparations(options.preparations_with_whitelist, uses, size_bytes, since_ms)
        return options.preparations_with_whitelist
    return options.preparations


def _since_ms(context: CreationContext) -> int:
    """Return when a preparation began that ends now."""
    return context.now_ms() - context.options.prepare_deadline_ms


async def _has_whitelist(context: CreationContext, request: CreationRequest) -> bool:
    """Return whether the chain has a whitelist of the creator, False while the chain cannot be read."""
    try:
        reader = context.for_anyone().reader
        return await reader.proposer_whitelist(request.creator) is not None
    except (Unavailable, Upstream):
        return False


def _same_request(request: CreationRequest, envelope: Envelope, upload: Upload) -> CreationRequest:
    """Return the request if exactly this upload and envelope started it, or refuse."""
    challenge = request.challenge
    given = (
        envelope.nonce,
        envelope.expires_at_ms,
        envelope.payload_hash,
        envelope.signature.hex(),
        payload_hash(upload.payload),
        upload.images_hash if request.images_hash else None,
    )
    used = (
        challenge.nonce,
        challenge.expires_at_ms,
        challenge.payload_hash,
        request.signature,
        challenge.payload_hash,
        request.images_hash,
    )
    if given != used:
        raise ChallengeUsed(request.request_id)
    return request


def _check_signed(payload: Payload, request: CreationRequest) -> None:
    """Refuse a payload with another creator or chain than the signed challenge."""
    if payload.creator != request.creator:
        raise AuthInvalid(f"the payload's creator is {payload.creator}, not {request.creator}")
    if payload.chain_id != request.challenge.chain_id:
        signed = request.challenge.chain_id
        raise InvalidFields(
            [FieldProblem("chainId", f"must be {signed}, the chain id of the challenge")]
        )


async def _normalized(
    context: CreationContext, upload: Upload, payload: Payload, source: str
) -> dict[str, bytes]:
    """Return the normalized images by field, or refuse: the images of clients are decoded in turn."""
    place_by_field = assign_images([name for name, _ in upload.images], places_of(payload))
    content_by_field = {}
    for field, place in place_by_field.items():
        try:
            await context.decodings.take(source)
        except (TooManyRequests, ReadsBusy) as refusal:
            raise ImagesBusy(refusal.retry_after_s or 1) from refusal
        try:
            content_by_field[field] = await context.images.normalize(*upload.images[place])
        finally:
            context.decodings.release(source)
    return content_by_field
