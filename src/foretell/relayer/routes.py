"""The relayer's HTTP surface: wallets without gas.

Owners sign, the relayer pays. Reading is open to everyone, since a transaction's id is nobody's to
guess and a nonce no secret; asking for anything needs an API key, and every transaction its owner's
signature besides.
"""

from typing import Final

from litestar import Litestar, MediaType, Response, get, post
from litestar.di import NamedDependency

from foretell.domain.relay.request import RelayKind
from foretell.edge.application import build_application
from foretell.edge.codec import AnyRequest, json_response, read_body
from foretell.edge.openapi import answering, choices, taking, texts
from foretell.edge.query import Query
from foretell.relayer import responses
from foretell.relayer.body import BODY_BYTES_MAX
from foretell.relayer.callers import caller_of, owner_of
from foretell.relayer.context import RelayerContext
from foretell.relayer.health import check_health
from foretell.relayer.nonces import find_next_nonce
from foretell.relayer.operations import Operation, operate, submit
from foretell.relayer.refusals import relayer_body

TITLE: Final = "Foretell relayer"
ABOUT: Final = (
    "Sends what owners of Safe wallets signed, and pays for it. Header names of an API key bear the"
    " prefix SERVICE_."
)

Answer = Response[bytes]
Services = NamedDependency[RelayerContext]

ADDRESS: Final = texts("address", "an owner, or its wallet", required=True)
WALLET: Final = texts("address", "a wallet", required=True)
KIND: Final = choices("type", "the kind of wallet", list(RelayKind), RelayKind.SAFE)
ID: Final = texts("id", "a transactionID", required=True)


@get("/", media_type=MediaType.TEXT)
async def show_root(context: Services) -> str:
    """Say that transactions can be sent now."""
    await check_health(context)
    return "OK"


@get(
    "/nonce",
    responses=answering(responses.NonceRecord, "The nonce to sign."),
    operation_class=taking(ADDRESS, KIND),
)
async def show_nonce(request: AnyRequest, context: Services) -> Answer:
    """Return the nonce of a wallet's next transaction, those under way counted in."""
    query = Query.of(request)
    address = query.wallet("address")
    query.choice("type", RelayKind.SAFE, list(RelayKind))
    query.check_known()
    return json_response(responses.NonceRecord(str(await find_next_nonce(context, address))))


@get(
    "/deployed",
    responses=answering(responses.DeployedRecord, "Whether the wallet exists."),
    operation_class=taking(WALLET, KIND),
)
async def show_deployed(request: AnyRequest, context: Services) -> Answer:
    """Say whether a wallet is on the chain."""
    query = Query.of(request)
    address = query.wallet("address")
    query.skip("type")
    query.check_known()
    return json_response(responses.DeployedRecord(bool(await context.reader.code(address))))


@post(
    "/submit",
    status_code=200,
    responses=answering(responses.SubmittedRecord, "What became of it so far."),
)
async def submit_transaction(request: AnyRequest, context: Services) -> Answer:
    """Take in a wallet's transaction, or the wish for a wallet (L2 or builder)."""
    raw = await read_body(request, BODY_BYTES_MAX)
    submitted = await submit(context, await caller_of(context, request, raw), raw)
    return json_response(await responses.submitted_record(context, submitted))


@get(
    "/transaction",
    responses=answering(list[responses.TransactionRecord], "The one transaction, or none."),
    operation_class=taking(ID),
)
async def show_transaction(request: AnyRequest, context: Services) -> Answer:
    """Show what became of a submission."""
    query = Query.of(request)
    transaction_id = query.required("id")
    query.check_known()
    return json_response(await responses.find_transaction(context, transaction_id))


@get(
    "/transactions",
    responses=answering(list[responses.TransactionRecord], "At most 100, the newest first."),
)
async def show_transactions(request: AnyRequest, context: Services) -> Answer:
    """Show what the caller signed, or sent in for others (L2 or builder)."""
    caller = await caller_of(context, request, b"")
    return json_response(await responses.list_transactions(context, caller.address))


@post(
    "/operations/redeem-position",
    status_code=200,
    responses=answering(responses.ExecutionRecord, "The transaction, in a block if in time."),
)
async def redeem_position(request: AnyRequest, context: Services) -> Answer:
    """Have a wallet redeem tokens of a resolved condition (L2)."""
    return await _operate(request, context, Operation.REDEEM)


@post(
    "/operations/merge-position",
    status_code=200,
    responses=answering(responses.ExecutionRecord, "The transaction, in a block if in time."),
)
async def merge_position(request: AnyRequest, context: Services) -> Answer:
    """Have a wallet merge complete sets into collateral (L2)."""
    return await _operate(request, context, Operation.MERGE)


async def _operate(request: AnyRequest, context: RelayerContext, operation: Operation) -> Answer:
    raw = await read_body(request, BODY_BYTES_MAX)
    caller = await owner_of(context, request, raw)
    execution = await operate(context, caller, operation, raw)
    return json_response(responses.execution_record(execution))


def build_app(context: RelayerContext) -> Litestar:
    """Return the relayer's application."""
    return build_application(
        title=TITLE,
        about=ABOUT,
        routes=[
            show_root,
            show_nonce,
            show_deployed,
            submit_transaction,
            show_transaction,
            show_transactions,
            redeem_position,
            merge_position,
        ],
        context=context,
        body_of=relayer_body,
    )
