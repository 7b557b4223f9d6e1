"""Answers of the relayer."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from foretell.domain.evm.transaction import SentTx
from foretell.domain.relay.request import RelayRequest
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.edge.rendering import iso_time
from foretell.relayer.context import RelayerContext
from foretell.relayer.operations import Execution
from foretell.store.outbox.relays import load_relay, load_relays_of
from foretell.store.outbox.transactions import RELAYED, load_txs

TRANSACTIONS_MAX: Final = 100


class NonceRecord(msgspec.Struct, frozen=True):
    """A wallet's next nonce."""

    nonce: str


class DeployedRecord(msgspec.Struct, frozen=True):
    """The presence of a contract at an address."""

    deployed: bool


class SubmittedRecord(msgspec.Struct, frozen=True, rename="camel"):
    """The state of a submission; clients read the hash under either of its two names."""

    transaction_id: str = msgspec.field(name="transactionID")
    state: str
    transaction_hash: str | None
    hash: str | None


class ExecutionRecord(msgspec.Struct, frozen=True, rename="camel"):
    """The transaction of an operation."""

    tx_hash: str
    confirmations: int


class TransactionRecord(msgspec.Struct, frozen=True, rename="camel"):
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


def execution_record(execution: Execution) -> ExecutionRecord:
    """Return the answer of an operation."""
    return ExecutionRecord(execution.tx_hash, execution.confirmations)


async def submitted_record(context: RelayerContext, request: RelayRequest) -> SubmittedRecord:
    """Return the answer of a submission."""
    (record,) = await _records(context, [request])
    return SubmittedRecord(
        record.transaction_id, record.state, record.transaction_hash, record.transaction_hash
    )


async def find_transaction(
    context: RelayerContext, transaction_id: str
) -> Sequence[TransactionRecord]:
    """Return the request of an id, or an empty list."""
    async with context.database.reading() as tx:
        found = await load_relay(tx, transaction_id)
    return [] if found is None else await _records(context, [found])


async def list_transactions(
    context: RelayerContext, address: Address
) -> Sequence[TransactionRecord]:
    """Return the requests that an address signed or submitted, the newest first."""
    async with context.database.reading() as tx:
        found = await load_relays_of(tx, address, TRANSACTIONS_MAX)
    return await _records(context, found)


async def _records(
    context: RelayerContext, requests: Sequence[RelayRequest]
) -> list[TransactionRecord]:
    async with context.database.reading() as tx:
        carrying_txs = await load_txs(tx, RELAYED, [request.tx_id for request in requests])
    carrying_tx_by_id = {carrier.tx_id: carrier for carrier in carrying_txs}
    return [_record(request, carrying_tx_by_id) for request in requests]


def _record(request: RelayRequest, carrying_tx_by_id: Mapping[str, SentTx]) -> TransactionRecord:
    carrier = carrying_tx_by_id.get(request.tx_id)
    tx_hash = None if carrier is None else carrier.mined_hash or carrier.newest.tx_hash
    return TransactionRecord(
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
