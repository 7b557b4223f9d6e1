"""Routes of market creation. No header authenticates a creator: the signed challenge does.

`GET /pending` needs only a request's id or a creator's address: the plan, the hashes, the status and
the error are public.
"""

from functools import partial
from pathlib import Path
from typing import Final

from litestar import Litestar, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from foretell.creation import refusals, responses
from foretell.creation.accept import accept
from foretell.creation.challenge import issue_challenge
from foretell.creation.config import market_config
from foretell.creation.context import CreationContext
from foretell.creation.finalize import confirm_txs, finalize
from foretell.creation.messages import parse_auth_request, parse_sent_txs
from foretell.creation.pending import PARAMETERS, find_request
from foretell.creation.refusals import DOCUMENTED, worker_body
from foretell.creation.render import (
    render_challenge,
    render_confirm,
    render_finalize,
    render_prepare,
    render_request,
)
from foretell.creation.request_bodies import (
    UPLOAD,
    ChallengeBody,
    FinalizeBody,
    PayloadBody,
    SentTxsBody,
)
from foretell.creation.steps import list_steps
from foretell.creation.uploads import read_upload
from foretell.creation.validate import validate_payload
from foretell.domain.creation.payload import PAYLOAD_BYTES_MAX
from foretell.domain.errors.creation import RequestNotFound
from foretell.domain.errors.families import IllegalTransition, InvalidFields
from foretell.domain.errors.http import MissingParameter, OriginRefused
from foretell.edge.application import build_application
from foretell.edge.client_addresses import UNKNOWN
from foretell.edge.codec import AnyRequest, JsonResponse, json_response, read_body
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.errors import PUBLIC_READ
from foretell.edge.documents.openapi import Api
from foretell.edge.idempotency import answer_keyed
from foretell.edge.query import Query
from foretell.edge.signed_requests import Act
from foretell.edge.throttled_application import address_of, turn_of

TITLE: Final = "Foretell market creation"
ABOUT: Final = (
    "Takes payloads that a creator signed, plans its transactions, and opens the markets that they"
    " make. No header of authentication is read."
)
BODY_BYTES_MAX: Final = 256 * 1024
RAW: Final = "application/octet-stream"
UNCHANGING: Final = "public, max-age=31536000, immutable"
CACHED: Final = {"cache-control": "Always: it never changes.", "etag": "The id, quoted."}

Context = NamedDependency[CreationContext]


def build_app(context: CreationContext, npm_folder: Path | None = None) -> Litestar:
    """Return the application of market creation."""
    return build_application(
        api=Api("creation", TITLE, ABOUT, DOCUMENTED),
        routes=[
            show_root,
            show_config,
            validate,
            prepare_auth,
            prepare,
            show_pending,
            confirm,
            finalize_request,
            show_blob,
            show_item,
        ],
        context=context,
        body_of=worker_body,
        npm_folder=npm_folder,
    )


@get("/", opt=describe(Success(str, "OK"), tag="Status"))
async def show_root() -> JsonResponse:
    """Answer `OK` when the API is reachable."""
    return json_response("OK")


@get(
    "/market-config",
    opt=describe(
        Success(responses.Config, "The configuration."), tag="Creation", refusals=refusals.CHAIN
    ),
)
async def show_config(context: Context) -> JsonResponse:
    """Return chains, contracts, fees and limits."""
    config = await context.shared_calls.result("market config", partial(market_config, context))
    return json_response(config)


@post(
    "/validate",
    status_code=200,
    opt=describe(
        Success(responses.ValidationResponse, "All problems, or the fees and the markets."),
        tag="Creation",
        body=PayloadBody,
        refusals=(*PUBLIC_READ, InvalidFields, OriginRefused, *refusals.CHAIN),
    ),
)
async def validate(request: AnyRequest, context: Context) -> JsonResponse:
    """Check a payload before anything is signed; nothing is stored."""
    raw = await read_body(request, PAYLOAD_BYTES_MAX)
    return json_response(await validate_payload(context.for_anyone(), raw))


@post(
    "/prepare-auth",
    status_code=200,
    opt=describe(
        Success(responses.ChallengeResponse, "The challenge to sign."),
        tag="Creation",
        body=ChallengeBody,
        refusals=(*PUBLIC_READ, InvalidFields, OriginRefused),
        is_keyed=True,
    ),
)
async def prepare_auth(request: AnyRequest, context: Context) -> JsonResponse:
    """Issue a challenge for the hash of a payload."""
    body = await read_body(request)
    wanted = parse_auth_request(body)
    turn = turn_of(request)
    source = UNKNOWN if turn is None else turn.address

    async def issue() -> object:
        return render_challenge(await issue_challenge(context, wanted, source))

    return await _answer(request, context, body, issue)


@post(
    "/prepare",
    status_code=200,
    opt=describe(
        Success(responses.OpenedResponse, "The status of the request."),
        tag="Creation",
        body=UPLOAD,
        refusals=refusals.PREPARE,
        is_keyed=True,
    ),
)
async def prepare(request: AnyRequest, context: Context) -> JsonResponse:
    """Accept a payload, its signed challenge and its images, and start preparing.

    A question of `alt_moov2` that its creator asked itself must have the plan's terms: at least its
    reward, its bond and its liveness. Another is refused as `already_initialized`, and its entry in
    `details.duplicates` has `terms` and `plannedTerms`.
    """
    address = address_of(request)
    with context.uploads.share(address) as share:
        upload = await read_upload(request, context.images.policy.upload_bytes_max, share)

        async def start() -> object:
            return render_prepare(await accept(context, upload, address))

        return await _answer(request, context, upload.content_hash, start)


@get(
    "/pending",
    opt=describe(
        Success(responses.Pending, "The request, or null."),
        *PARAMETERS,
        tag="Creation",
        refusals=(*PUBLIC_READ, RequestNotFound, MissingParameter),
    ),
)
async def show_pending(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the request of an id, or a creator's latest that can continue."""
    found = await find_request(context, Query.of(request))
    shown = None if found is None else render_request(found, list_steps(context, found))
    return json_response(responses.Pending(request=shown))


@post(
    "/tx-confirm",
    status_code=200,
    opt=describe(
        Success(responses.Confirmed, "All stored hashes."),
        tag="Creation",
        body=SentTxsBody,
        refusals=(*PUBLIC_READ, InvalidFields, RequestNotFound, IllegalTransition, OriginRefused),
        is_keyed=True,
    ),
)
async def confirm(request: AnyRequest, context: Context) -> JsonResponse:
    """Store the hashes of the creator's transactions."""
    body = await read_body(request, BODY_BYTES_MAX)
    sent = parse_sent_txs(body, may_omit_txs=False)

    async def store() -> object:
        return render_confirm(await confirm_txs(context, sent))

    return await _answer(request, context, body, store)


@post(
    "/finalize",
    status_code=200,
    opt=describe(
        Success(responses.Finalized, "The status of the request, and its results."),
        tag="Creation",
        body=FinalizeBody,
        refusals=refusals.FINALIZE,
        is_keyed=True,
    ),
)
async def finalize_request(request: AnyRequest, context: Context) -> JsonResponse:
    """Check the creator's transactions against the plan, and continue the request."""
    body = await read_body(request, BODY_BYTES_MAX)
    sent = parse_sent_txs(body, may_omit_txs=True)

    async def go_on() -> object:
        return render_finalize(await finalize(context, sent))

    return await _answer(request, context, body, go_on)


async def _answer(
    request: AnyRequest, context: CreationContext, content: bytes, act: Act
) -> JsonResponse:
    """Return the answer to a request, carried out unless one with its idempotency key was before.

    Nobody is authenticated here, so a key has a meaning for the address that sent it. A malformed body is refused
    before: it leaves no key behind, and is refused alike whenever it is sent.
    """
    client = f"creation {address_of(request)}"
    return await answer_keyed(request, context.signed_requests, client, content, act)


@get(
    "/blobs/{blob_id:str}",
    opt=describe(
        Success(bytes, "What it holds.", "*/*", CACHED), tag="Stored items", refusals=refusals.BLOB
    ),
)
async def show_blob(blob_id: FromPath[str], context: Context) -> Response[bytes]:
    """Return the content of an item: an image or a document."""
    item = await context.blobs.load(blob_id)
    return _unchanging(item.data, item.content_type, blob_id)


@get(
    "/blobs/{blob_id:str}/item",
    opt=describe(
        Success(bytes, "The item, as it was signed.", RAW, CACHED),
        tag="Stored items",
        refusals=refusals.BLOB,
    ),
)
async def show_item(blob_id: FromPath[str], context: Context) -> Response[bytes]:
    """Return an item as it was signed, ready to be posted to a permanent network."""
    item = await context.blobs.load(blob_id)
    return _unchanging(item.raw, RAW, f"{blob_id}.item")


def _unchanging(content: bytes, kind: str, tag: str) -> Response[bytes]:
    headers = {"cache-control": UNCHANGING, "etag": f'"{tag}"'}
    return Response(content, media_type=kind, headers=headers)
