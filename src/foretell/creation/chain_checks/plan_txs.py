"""Transactions of a plan, as the chain has them.

Anyone may name hashes for a request, so they may be those of any transactions. The bytes of each answer are bounded
by the plan, and no receipt is asked for before all transactions that the node knows are known to be the plan's: a
stranger's receipt may have a hundred thousand logs.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import ChainTx, RawSighting, chain_tx_of, sighting_of
from foretell.chain.smaller_reads import BatchReader
from foretell.domain.creation.plan import PlanItem, PlanTx, SeenTx, check_txs
from foretell.domain.errors.chain import AnswerTooLarge, RpcRefused
from foretell.domain.errors.creation import TxInvalid, TxPending
from foretell.domain.evm.transaction import MinedAttempt
from foretell.domain.values.hexadecimal import Address, Bytes32

TXS_PER_REQUEST_MAX: Final = 20
TX_FIELDS_BYTES_MAX: Final = 16 * 1024
"""Bytes of the node's answer beside the calldata: all other fields, with the access list and the authorizations."""

_T = TypeVar("_T")


async def fetch_plan_txs(
    rpc: Rpc, plan: Sequence[PlanItem], hash_by_id: Mapping[str, Bytes32], creator: Address
) -> Mapping[Bytes32, SeenTx]:
    """Return the transactions of a plan as the chain has them, or refuse any that differ."""
    txs = await _fetch_txs(rpc, plan, hash_by_id)
    # Without receipts, transactions that are as planned are pending.
    with contextlib.suppress(TxPending):
        check_txs(plan, hash_by_id, {tx.tx_hash: _seen(tx, None) for tx in txs}, creator)
    sighting_by_hash = await _fetch_sightings(rpc, [tx.tx_hash for tx in txs])
    seen_by_hash = {tx.tx_hash: _seen(tx, sighting_by_hash.get(tx.tx_hash)) for tx in txs}
    check_txs(plan, hash_by_id, seen_by_hash, creator)
    return seen_by_hash


def _seen(tx: ChainTx, sighting: MinedAttempt | None) -> SeenTx:
    return SeenTx(
        sender=tx.sender,
        target=tx.target,
        value_wei=tx.value_wei,
        calldata=tx.calldata,
        is_success=None if sighting is None else sighting.is_success,
        block_number=None if sighting is None else sighting.block_number,
    )


async def _fetch_txs(
    rpc: Rpc, plan: Sequence[PlanItem], hash_by_id: Mapping[str, Bytes32]
) -> list[ChainTx]:
    """Return the transactions of these hashes that the node knows; refuse one that is too large to be the plan's."""
    bytes_max = 2 * max((len(item.calldata) for item in plan), default=0) + TX_FIELDS_BYTES_MAX
    named = [
        PlanTx(item.item_id, hash_by_id[item.item_id])
        for item in plan
        if item.item_id in hash_by_id
    ]
    known = []
    for part in _parts(named):
        answers = await _fetch_part(rpc, part, bytes_max)
        txs = [chain_tx_of(answer) for answer in answers]
        known += [
            tx
            for each, tx in zip(part, txs, strict=True)
            if tx is not None and tx.tx_hash == each.tx_hash
        ]
    return known


async def _fetch_part(rpc: Rpc, part: Sequence[PlanTx], bytes_max: int) -> list[Any]:
    """Return the node's answers for some transactions, asked for one by one when they are too large together."""
    calls = [("eth_getTransactionByHash", [each.tx_hash]) for each in part]
    try:
        answers = await rpc.send_all(calls, answer_bytes_max=len(part) * bytes_max)
    except AnswerTooLarge:
        if len(part) > 1:
            return [answer for each in part for answer in await _fetch_part(rpc, [each], bytes_max)]
        (tx,) = part
        reason = "the transaction is larger than any of the plan"
        raise TxInvalid([{"id": tx.item_id, "hash": tx.tx_hash, "reason": reason}]) from None
    for answer in answers:
        if isinstance(answer, RpcRefused):
            raise answer
    return answers


async def _fetch_sightings(rpc: Rpc, hashes: Sequence[Bytes32]) -> dict[Bytes32, MinedAttempt]:
    """Return where the transactions are that are in a block, by their hashes."""
    batches, sightings = BatchReader(rpc), []
    for part in _parts(hashes):
        calls = [("eth_getTransactionReceipt", [tx_hash]) for tx_hash in part]
        answers = await batches.read(RawSighting, calls, list)
        sightings += [sighting_of(answer) for answer in answers if answer is not None]
    return {sighting.tx_hash: sighting for sighting in sightings}


def _parts(named: Sequence[_T]) -> Iterator[Sequence[_T]]:
    for start in range(0, len(named), TXS_PER_REQUEST_MAX):
        yield named[start : start + TXS_PER_REQUEST_MAX]
