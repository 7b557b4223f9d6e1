"""Responses of the relayer."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from foretell.domain.errors.relayer import TransactionNotFound
from foretell.domain.evm.transaction import SentTx
from foretell.domain.relay.request import RelayRequest
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.domain.values.instants import iso_time
from foretell.relayer.context import RelayerContext
from foretell.relayer.operations import Execution
from foretell.store.database import Transaction
from foretell.store.failures import after_effect
from foretell.store.outbox.relays import load_relay, load_relays_of
from foretell.store.outbox.transactions import RELAYED, load_txs
from foretell.store.public_reads.places import ReadKind

TRANSACTIONS_MAX: Final = 100


class NonceResponse(msgspec.Struct, frozen=True):
    """A wallet's next nonce."""

    nonce: str


class DeployedResponse(msgspec.Struct, frozen=True):
    """The presence of a contract at an address."""

    deployed: bool


class SubmittedResponse(msgspec.Struct, frozen=True, rename="camel"):
    """The state of a submission; clients read the hash under either of its two names."""

    transaction_id: str = msgspec.field(name="transactionID")
    state: str
    transaction_hash: str | None
    hash: str | None


class ExecutionResponse(msgspec.Struct, frozen=True, rename="camel"):
    """The transaction of an operation."""

    tx_hash: str
    confirmations: int


class TransactionResponse(msgspec.Struct, frozen=True, rename="camel"):
    """A relay request with its current state."""

    transaction_id: str = msgspec.field(name="transactionID")
    transaction_hash: str | None
    owner: str = msgspec.field(name="from")
    to: str
    proxy_address: str
    data: str
    nonce: str
    value: str
    state: str
    type: str
    metadata: str
    failure_reason: str | None
    created_at: str
    updated_at: str


class PayloadResponse(msgspec.Struct, frozen=True):
    """The account that sends, and a wallet's next nonce."""

    address: str
    nonce: str


class AccountTransactionResponse(msgspec.Struct, frozen=True):
    """A relay request, in short."""

    transaction_id: str
    transaction_hash: str | None
    state: str
    error_msg: str | None


def render_payload(context: RelayerContext, nonce: int) -> PayloadResponse:
    """Return the account that sends, and a nonce."""
    return PayloadResponse(checksum_address(context.sender.address), str(nonce))


async def find_account_transaction(
    context: RelayerContext, address: Address, transaction_id: str
) -> AccountTransactionResponse:
    """Return a request that an address signed or submitted, or refuse."""
    async with context.database.public_reading(ReadKind.OWN) as tx:
        found = await load_relay(tx, transaction_id)
        if found is None or address not in {found.owner, found.submitter}:
            raise TransactionNotFound
        (shown,) = await _render_all(tx, [found])
    return AccountTransactionResponse(
        shown.transaction_id, shown.transaction_hash, shown.state, shown.failure_reason
    )


def render_execution(execution: Execution) -> ExecutionResponse:
    """Return the answer of an operation."""
    return ExecutionResponse(execution.tx_hash, execution.confirmations)


async def render_submitted(context: RelayerContext, request: RelayRequest) -> SubmittedResponse:
    """Return the answer of a submission, which has been accepted."""
    with after_effect():
        async with context.database.public_reading(ReadKind.OWN) as tx:
            (shown,) = await _render_all(tx, [request])
    return SubmittedResponse(
        shown.transaction_id, shown.state, shown.transaction_hash, shown.transaction_hash
    )


async def find_transaction(
    context: RelayerContext, transaction_id: str
) -> Sequence[TransactionResponse]:
    """Return the request of an id, or an empty list."""
    async with context.database.public_reading() as tx:
        found = await load_relay(tx, transaction_id)
        return [] if found is None else await _render_all(tx, [found])


async def list_transactions(
    context: RelayerContext, address: Address, kind: ReadKind
) -> Sequence[TransactionResponse]:
    """Return the requests that an address signed or submitted, the newest first."""
    async with context.database.public_reading(kind) as tx:
        found = await load_relays_of(tx, address, TRANSACTIONS_MAX)
        return await _render_all(tx, found)


async def list_public_transactions(
    context: RelayerContext, address: Address
) -> Sequence[TransactionResponse]:
    """Return the same for anyone: without the labels that the submitters chose."""
    listed = await list_transactions(context, address, ReadKind.LISTING)
    return [msgspec.structs.replace(each, metadata="") for each in listed]


async def _render_all(
    tx: Transaction, requests: Sequence[RelayRequest]
) -> list[TransactionResponse]:
    carrying_txs = await load_txs(tx, RELAYED, [request.tx_id for request in requests])
    carrying_tx_by_id = {sent.tx_id: sent for sent in carrying_txs}
    return [_render(request, carrying_tx_by_id) for request in requests]


def _render(request: RelayRequest, carrying_tx_by_id: Mapping[str, SentTx]) -> TransactionResponse:
    carrying_tx = carrying_tx_by_id.get(request.tx_id)
    tx_hash = None if carrying_tx is None else carrying_tx.mined_hash or carrying_tx.newest.tx_hash
    return TransactionResponse(
        transaction_id=request.transaction_id,
        transaction_hash=tx_hash,
        owner=checksum_address(request.owner),
        to=checksum_address(request.target),
        proxy_address=checksum_address(request.wallet),
        data="0x" + request.calldata.hex(),
        nonce="" if request.safe_nonce is None else str(request.safe_nonce),
        value="0",
        state=request.state.value,
        type=request.kind.value,
        metadata=request.metadata or "",
        failure_reason=request.failure,
        created_at=iso_time(request.created_at_ms),
        updated_at=iso_time(request.updated_at_ms),
    )
