"""Routes of the relayer: transactions of wallets without gas.

Owners sign, the relayer pays. Reading needs no authentication: transaction ids cannot be guessed and
nonces are public. A submission needs an API key and the signature of the wallet's owner.
"""

from pathlib import Path
from typing import Final

from litestar import Litestar, MediaType, get, post
from litestar.di import NamedDependency

from foretell.domain.errors.storage import ReadsBusy
from foretell.domain.relay.request import RelayKind
from foretell.edge.application import build_application
from foretell.edge.codec import AnyRequest, JsonResponse, json_response
from foretell.edge.documents.description import TEXT, Body, Success, describe
from foretell.edge.documents.errors import PUBLIC_READ
from foretell.edge.documents.openapi import Api
from foretell.edge.documents.security import L2, L2_OR_BUILDER, L2_OR_BUILDER_IF_SIGNED
from foretell.edge.idempotency import answer_keyed
from foretell.edge.query import Query
from foretell.edge.signed_requests import Act
from foretell.relayer import account_routes, refused, responses
from foretell.relayer.callers import SignedSubmission, caller_of, is_signed, owner_of
from foretell.relayer.context import RelayerContext
from foretell.relayer.health import check_health
from foretell.relayer.nonces import find_next_nonce
from foretell.relayer.operations import Operation, deploy, operate, submit
from foretell.relayer.parameters import ADDRESS, ANY_KIND, ID, KIND, OWNER, WALLET
from foretell.relayer.refusals import DOCUMENTED, relayer_body
from foretell.relayer.request_bodies import DeploymentBody, SafeBody, SubmissionBody
from foretell.store.public_reads.places import ReadKind
from foretell.store.write_places import writing_for

TITLE: Final = "Foretell relayer"
ABOUT: Final = (
    "Sends what owners of Safes and deposit wallets signed, and pays for it. Header names of an API key bear the"
    " prefix SERVICE_."
)

Context = NamedDependency[RelayerContext]


@get(
    "/",
    media_type=MediaType.TEXT,
    opt=describe(Success(str, "OK", TEXT), tag="Status", refusals=refused.HEALTH),
)
async def show_root(context: Context) -> str:
    """Answer when transactions can be sent."""
    await check_health(context)
    return "OK"


@get(
    "/nonce",
    opt=describe(
        Success(responses.NonceResponse, "The nonce to sign."),
        ADDRESS,
        KIND,
        tag="Wallets",
        refusals=(*PUBLIC_READ, *refused.CHAIN),
    ),
)
async def show_nonce(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the nonce of a wallet's next transaction, after those in progress."""
    query = Query.of(request)
    address = query.read(ADDRESS)
    kind = query.read(KIND)
    query.check_known()
    nonce = await find_next_nonce(context, address, RelayKind(kind), ReadKind.LISTING)
    return json_response(responses.NonceResponse(str(nonce)))


@get(
    "/deployed",
    opt=describe(
        Success(responses.DeployedResponse, "Whether the wallet exists."),
        WALLET,
        ANY_KIND,
        tag="Wallets",
        refusals=(ReadsBusy, *refused.CHAIN),
    ),
)
async def show_deployed(request: AnyRequest, context: Context) -> JsonResponse:
    """Return whether a wallet is on the chain."""
    query = Query.of(request)
    address = query.read(WALLET)
    query.check([ANY_KIND])
    return json_response(
        responses.DeployedResponse(bool(await context.reader.public.code(address)))
    )


@post(
    "/submit",
    status_code=200,
    opt=describe(
        Success(responses.SubmittedResponse, "The state of the transaction."),
        tag="Transactions",
        body=Body(SubmissionBody),
        security=L2_OR_BUILDER,
        refusals=refused.SUBMIT,
        is_keyed=True,
    ),
)
async def submit_transaction(request: AnyRequest, context: Context) -> JsonResponse:
    """Accept a wallet's transaction, or its deployment (L2 or builder)."""
    signed = await caller_of(context, request)

    async def accept() -> responses.SubmittedResponse:
        return await responses.render_submitted(context, await submit(context, *signed))

    return await _answer(request, context, signed, accept)


@get(
    "/transaction",
    opt=describe(
        Success(list[responses.TransactionResponse], "The one transaction, or none."),
        ID,
        tag="Transactions",
        refusals=PUBLIC_READ,
    ),
)
async def show_transaction(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the state of a submission."""
    query = Query.of(request)
    transaction_id = query.read(ID)
    query.check_known()
    return json_response(await responses.find_transaction(context, transaction_id))


@get(
    "/transactions",
    opt=describe(
        Success(list[responses.TransactionResponse], "At most 100, the newest first."),
        OWNER,
        tag="Transactions",
        security=L2_OR_BUILDER_IF_SIGNED,
        refusals=PUBLIC_READ,
    ),
)
async def show_transactions(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the requests that the caller signed or submitted (L2 or builder).

    A request that is not signed names an owner, and gets that owner's without their metadata.
    """
    query = Query.of(request)
    owner = query.read(OWNER)
    query.check_known()
    if owner is not None and not is_signed(request):
        return json_response(await responses.list_public_transactions(context, owner))
    signed = await caller_of(context, request)
    return json_response(
        await responses.list_transactions(context, signed.caller.address, ReadKind.OWN)
    )


@post(
    "/operations/redeem-position",
    status_code=200,
    opt=describe(
        Success(responses.ExecutionResponse, "The transaction, in a block if in time."),
        tag="Positions",
        body=SafeBody,
        security=L2,
        refusals=refused.REDEEM,
        is_keyed=True,
    ),
)
async def redeem_position(request: AnyRequest, context: Context) -> JsonResponse:
    """Redeem a wallet's tokens of a resolved condition (L2)."""
    return await _operate(request, context, Operation.REDEEM)


@post(
    "/operations/merge-position",
    status_code=200,
    opt=describe(
        Success(responses.ExecutionResponse, "The transaction, in a block if in time."),
        tag="Positions",
        body=SafeBody,
        security=L2,
        refusals=refused.MERGE,
        is_keyed=True,
    ),
)
async def merge_position(request: AnyRequest, context: Context) -> JsonResponse:
    """Merge a wallet's complete sets into collateral (L2)."""
    return await _operate(request, context, Operation.MERGE)


@post(
    "/operations/split-position",
    status_code=200,
    opt=describe(
        Success(responses.ExecutionResponse, "The transaction, in a block if in time."),
        tag="Positions",
        body=SafeBody,
        security=L2,
        refusals=refused.OPERATION,
        is_keyed=True,
    ),
)
async def split_position(request: AnyRequest, context: Context) -> JsonResponse:
    """Split a wallet's collateral into complete sets (L2)."""
    return await _operate(request, context, Operation.SPLIT)


@post(
    "/operations/convert-position",
    status_code=200,
    opt=describe(
        Success(responses.ExecutionResponse, "The transaction, in a block if in time."),
        tag="Positions",
        body=SafeBody,
        security=L2,
        refusals=refused.OPERATION,
        is_keyed=True,
    ),
)
async def convert_position(request: AnyRequest, context: Context) -> JsonResponse:
    """Convert a wallet's No tokens of an event into Yes tokens of its others (L2)."""
    return await _operate(request, context, Operation.CONVERT)


@post(
    "/operations/approve",
    status_code=200,
    opt=describe(
        Success(responses.ExecutionResponse, "The transaction, in a block if in time."),
        tag="Positions",
        body=SafeBody,
        security=L2,
        refusals=refused.OPERATION,
        is_keyed=True,
    ),
)
async def approve(request: AnyRequest, context: Context) -> JsonResponse:
    """Set a wallet's collateral allowance (L2)."""
    return await _operate(request, context, Operation.APPROVE)


@post(
    "/operations/set-approval",
    status_code=200,
    opt=describe(
        Success(responses.ExecutionResponse, "The transaction, in a block if in time."),
        tag="Positions",
        body=SafeBody,
        security=L2,
        refusals=refused.OPERATION,
        is_keyed=True,
    ),
)
async def set_approval(request: AnyRequest, context: Context) -> JsonResponse:
    """Set a wallet's approval of an operator for its outcome tokens (L2)."""
    return await _operate(request, context, Operation.SET_APPROVAL)


@post(
    "/wallet/safe",
    status_code=200,
    opt=describe(
        Success(
            responses.ExecutionResponse, "The transaction; a hash of zeros if none was needed."
        ),
        tag="Wallets",
        body=DeploymentBody,
        security=L2,
        refusals=refused.OPERATION,
        is_keyed=True,
    ),
)
async def deploy_wallet(request: AnyRequest, context: Context) -> JsonResponse:
    """Deploy the owner's wallet, unless it exists (L2)."""
    signed = await owner_of(context, request)

    async def execute() -> responses.ExecutionResponse:
        return responses.render_execution(await deploy(context, signed.caller, signed.body))

    return await _answer(request, context, signed, execute)


async def _operate(
    request: AnyRequest, context: RelayerContext, operation: Operation
) -> JsonResponse:
    signed = await owner_of(context, request)

    async def execute() -> responses.ExecutionResponse:
        execution = await operate(context, signed.caller, operation, signed.body)
        return responses.render_execution(execution)

    return await _answer(request, context, signed, execute)


async def _answer(
    request: AnyRequest, context: RelayerContext, signed: SignedSubmission, act: Act
) -> JsonResponse:
    """Return the answer to a request, carried out unless one with its idempotency key was before."""
    client = f"relayer {signed.caller.address}"
    with writing_for(signed.caller.address):
        return await answer_keyed(request, context.signed_requests, client, signed.body, act)


def build_app(context: RelayerContext, npm_folder: Path | None = None) -> Litestar:
    """Return the relayer's application."""
    return build_application(
        api=Api("relayer", TITLE, ABOUT, DOCUMENTED),
        routes=[
            show_root,
            show_nonce,
            show_deployed,
            submit_transaction,
            show_transaction,
            show_transactions,
            redeem_position,
            merge_position,
            split_position,
            convert_position,
            approve,
            set_approval,
            deploy_wallet,
            *account_routes.ROUTES,
        ],
        context=context,
        body_of=relayer_body,
        npm_folder=npm_folder,
    )
