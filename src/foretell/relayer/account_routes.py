"""Routes of the relayer for newer and older clients: the sending account, and a caller's transactions."""

from typing import Final

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath

from foretell.domain.errors.relayer import TransactionNotFound
from foretell.domain.relay.request import RelayKind
from foretell.edge.codec import AnyRequest, JsonResponse, json_response
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.errors import PUBLIC_READ
from foretell.edge.documents.security import L2_OR_BUILDER
from foretell.edge.query import Query
from foretell.relayer import refused, responses
from foretell.relayer.callers import caller_of
from foretell.relayer.context import RelayerContext
from foretell.relayer.nonces import find_next_nonce
from foretell.relayer.parameters import ADDRESS, KIND
from foretell.store.public_reads.places import ReadKind

Context = NamedDependency[RelayerContext]


@get(
    "/relay-payload",
    opt=describe(
        Success(responses.PayloadResponse, "The account and the nonce."),
        ADDRESS,
        KIND,
        tag="Wallets",
        refusals=(*PUBLIC_READ, *refused.CHAIN),
    ),
)
async def show_payload(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the account that sends, and the nonce of a wallet's next transaction."""
    query = Query.of(request)
    address = query.read(ADDRESS)
    kind = RelayKind(query.read(KIND))
    query.check_known()
    nonce = await find_next_nonce(context, address, kind, ReadKind.LISTING)
    return json_response(responses.render_payload(context, nonce))


@get(
    "/v1/account/transactions/params",
    opt=describe(
        Success(responses.PayloadResponse, "The account and the nonce."),
        ADDRESS,
        KIND,
        tag="Wallets",
        security=L2_OR_BUILDER,
        refusals=(*PUBLIC_READ, *refused.CHAIN),
    ),
)
async def show_account_params(request: AnyRequest, context: Context) -> JsonResponse:
    """Return what `/relay-payload` does (L2 or builder)."""
    query = Query.of(request)
    address = query.read(ADDRESS)
    kind = RelayKind(query.read(KIND))
    query.check_known()
    await caller_of(context, request)
    nonce = await find_next_nonce(context, address, kind, ReadKind.OWN)
    return json_response(responses.render_payload(context, nonce))


@get(
    "/v1/account/transactions/{transaction_id:str}",
    opt=describe(
        Success(responses.AccountTransactionResponse, "The transaction."),
        tag="Transactions",
        security=L2_OR_BUILDER,
        refusals=(*PUBLIC_READ, TransactionNotFound),
    ),
)
async def show_account_transaction(
    request: AnyRequest, transaction_id: FromPath[str], context: Context
) -> JsonResponse:
    """Return a request that the caller signed or submitted (L2 or builder)."""
    signed = await caller_of(context, request)
    address = signed.caller.address
    return json_response(await responses.find_account_transaction(context, address, transaction_id))


ROUTES: Final = (show_payload, show_account_params, show_account_transaction)
