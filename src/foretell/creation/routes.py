"""The worker's HTTP surface. It reads no authentication header: what counts is the signed challenge.

`GET /pending` answers anyone who knows a request's id or a creator's address: the plan, the hashes,
the status and the error are no secrets.
"""

from typing import Final

from litestar import Litestar, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from foretell.creation import responses
from foretell.creation.challenge import issue_challenge
from foretell.creation.config import market_config
from foretell.creation.context import CreationContext
from foretell.creation.finalize import confirm_txs, finalize
from foretell.creation.messages import (
    confirm_answer,
    finalize_answer,
    parse_auth_request,
    parse_sent_txs,
    prepare_answer,
    request_document,
)
from foretell.creation.pending import CHAIN_ID_MAX, find_request
from foretell.creation.prepare import accept
from foretell.creation.refusals import worker_body
from foretell.creation.uploads import read_upload
from foretell.edge.application import build_application
from foretell.edge.codec import AnyRequest, json_response, read_body
from foretell.edge.openapi import answering, holding, integers, taking, texts
from foretell.edge.query import Query

TITLE: Final = "Foretell market creation"
ABOUT: Final = (
    "Takes payloads that a creator signed, plans its transactions, and opens the markets that they"
    " make. No header of authentication is read."
)
BODY_BYTES_MAX: Final = 256 * 1024
RAW: Final = "application/octet-stream"
FOR_EVER: Final = "public, max-age=31536000, immutable"

REQUEST_ID: Final = texts("requestId", "a request's id")
CREATOR: Final = texts("creator", "an address; needed where requestId is not given")
CHAIN_ID: Final = integers("chainId", None, 1, CHAIN_ID_MAX, "any chain if absent")

Services = NamedDependency[CreationContext]


def build_app(context: CreationContext) -> Litestar:
    """Return the worker's application."""
    return build_application(
        title=TITLE,
        about=ABOUT,
        routes=[
            show_root,
            show_config,
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
    )


@get("/", responses=answering(str, "OK"))
async def show_root() -> Response[bytes]:
    """Answer `OK` when the worker is reachable."""
    return json_response("OK")


@get("/market-config", responses=answering(responses.Config, "The configuration."))
async def show_config(context: Services) -> Response[bytes]:
    """Tell chains, contracts, fees and limits."""
    return json_response(await market_config(context))


@post(
    "/prepare-auth",
    status_code=200,
    responses=answering(responses.ChallengeResponse, "The challenge to sign."),
)
async def prepare_auth(request: AnyRequest, context: Services) -> Response[bytes]:
    """Give out a challenge for the hash of a payload."""
    wish = parse_auth_request(await read_body(request, BODY_BYTES_MAX))
    return json_response((await issue_challenge(context, wish)).document())


@post("/prepare", status_code=200, responses=answering(responses.OpenedResponse, "How it stands."))
async def prepare(request: AnyRequest, context: Services) -> Response[bytes]:
    """Accept a payload, its signed challenge and its images, and start preparing."""
    with context.uploads.share() as share:
        upload = await read_upload(request, context.images.policy.upload_bytes_max, share)
        accepted = await accept(context, upload)
    return json_response(prepare_answer(accepted))


@get(
    "/pending",
    responses=answering(responses.Pending, "The request, or null."),
    operation_class=taking(REQUEST_ID, CREATOR, CHAIN_ID),
)
async def show_pending(request: AnyRequest, context: Services) -> Response[bytes]:
    """Show a request by its id, or the latest of a creator that can go on."""
    found = await find_request(context, Query.of(request))
    return json_response({"request": None if found is None else request_document(found)})


@post(
    "/tx-confirm",
    status_code=200,
    responses=answering(responses.Confirmed, "All hashes that are kept."),
)
async def confirm(request: AnyRequest, context: Services) -> Response[bytes]:
    """Keep the hashes of transactions that the creator sent."""
    sent = parse_sent_txs(await read_body(request, BODY_BYTES_MAX), may_be_silent=False)
    return json_response(confirm_answer(await confirm_txs(context, sent)))


@post(
    "/finalize",
    status_code=200,
    responses=answering(responses.Finalized, "How it stands, and what came of it."),
)
async def finalize_request(request: AnyRequest, context: Services) -> Response[bytes]:
    """Check what was sent against the plan, and go on from there."""
    sent = parse_sent_txs(await read_body(request, BODY_BYTES_MAX), may_be_silent=True)
    return json_response(finalize_answer(await finalize(context, sent)))


@get("/blobs/{blob_id:str}", responses=holding("*/*", "What it holds."))
async def show_blob(blob_id: FromPath[str], context: Services) -> Response[bytes]:
    """Show what an item holds: an image, or a document."""
    item = await context.blobs.load(blob_id)
    return _unchanging(item.data, item.content_type, blob_id)


@get("/blobs/{blob_id:str}/item", responses=holding(RAW, "The item, as it was signed."))
async def show_item(blob_id: FromPath[str], context: Services) -> Response[bytes]:
    """Show an item as it was signed, fit to be posted to a permanent network."""
    item = await context.blobs.load(blob_id)
    return _unchanging(item.raw, RAW, f"{blob_id}.item")


def _unchanging(content: bytes, kind: str, tag: str) -> Response[bytes]:
    headers = {
        "cache-control": FOR_EVER,
        "etag": f'"{tag}"',
        "x-content-type-options": "nosniff",
    }
    return Response(content, media_type=kind, headers=headers)
