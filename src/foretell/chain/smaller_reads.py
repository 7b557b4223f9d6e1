"""Smaller reads, for answers that a node does not give whole.

Anyone may have contracts emit logs, at 380 gas for 400 bytes of an answer, so the size of an answer is not
ours to choose. What is beyond a bound, of ours or of the node, is never asked for again as it was: a batch is
halved down to one call, and the logs of one block are read in several ways, of which one is enough.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, TypeVar

import msgspec
import structlog

from foretell.chain.rpc import CALLS_PER_BATCH_MAX, Rpc
from foretell.chain.rpc_types import BlockHeader, LogName, ReceiptLogs, quantity_of
from foretell.domain.errors.chain import (
    AnswerTooLarge,
    ChainInconsistent,
    ChainUnavailable,
    RpcRefused,
)

TOO_LARGE: Final = (AnswerTooLarge, RpcRefused)
"""The failures of an answer that is not given whole: nodes refuse by bounds of their own, each in other words."""

GET_LOGS: Final = "eth_getLogs"
UNREADABLE: Final = (msgspec.MsgspecError, RecursionError)

_BLOCK_BY_HASH: Final = "eth_getBlockByHash"
_RECEIPT: Final = "eth_getTransactionReceipt"

T = TypeVar("T")
K = TypeVar("K")

log = structlog.get_logger(__name__)


class _NumberedLog(msgspec.Struct, rename="camel", frozen=True, gc=False):
    log_index: str


class _BlockHashes(msgspec.Struct):
    """The hashes of a block and of its transactions."""

    hash: str
    transactions: tuple[str, ...]


class BatchReader:
    """Batches of reads, as large as their answers allow.

    One call always has to fit. The receipt of one transaction does, where a transaction may use 16.7 million gas:
    it has at most about 18 MiB, and 64 are allowed.
    """

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc
        self._calls_max = CALLS_PER_BATCH_MAX

    async def read(
        self,
        kind: type[T],
        calls: Sequence[tuple[str, Sequence[object]]],
        keep: Callable[[Sequence[T | None]], Sequence[K]],
    ) -> list[K]:
        """Return what `keep` leaves of the results, batch by batch; the rest of one is freed before the next.

        After a batch that is too large those of this read have half of its calls, and those of the next reads
        grow again. A batch that is not answered fails the read, and the next one asks for half of it: a node may
        be silent for too long while it puts a large answer together.

        Raises AnswerTooLarge or RpcRefused when the node does not give the answer to one call.
        """
        kept: list[K] = []
        start, is_whole = 0, True
        while start < len(calls):
            part = calls[start : start + self._calls_max]
            try:
                kept += keep(await self._rpc.batch_as(kind, part))
            except TOO_LARGE:
                if len(part) == 1:
                    raise
                self._calls_max, is_whole = len(part) // 2, False
            except ChainUnavailable:
                self._calls_max = max(1, len(part) // 2)
                raise
            else:
                start += len(part)
        if is_whole:
            self._calls_max = min(CALLS_PER_BATCH_MAX, 2 * self._calls_max)
        return kept


class LogFilter:
    """A filter of the logs of some contracts, for a node and for its answers: of all, or of those with some first topics."""

    def __init__(self, contracts: Collection[str], topics: Collection[str] | None = None) -> None:
        self._contracts = frozenset(contracts)
        self._topics = None if topics is None else frozenset(topics)
        self._addresses = list(contracts)

    def query(self, **place: str) -> dict[str, Any]:
        """Return the query for the logs of some blocks."""
        named = {**place, "address": self._addresses}
        return named if self._topics is None else named | {"topics": [sorted(self._topics)]}

    def smaller_queries(self, **place: str) -> list[dict[str, Any]]:
        """Return queries that together find the same logs, each for one topic, or for one contract when all count."""
        query = self.query(**place)
        if self._topics is None:
            return [query | {"address": [contract]} for contract in self._addresses]
        return [query | {"topics": [[topic]]} for topic in sorted(self._topics)]

    def is_ours(self, text: msgspec.Raw) -> bool:
        """Return whether the query would find this log."""
        name = decoded(_NAME, text)
        if name.address.lower() not in self._contracts:
            return False
        return self._topics is None or (
            bool(name.topics) and name.topics[0].lower() in self._topics
        )


class SingleBlockReader:
    """Reads of the logs of one block, whose logs or receipts a node does not give in one answer.

    The receipts of the block's transactions, each asked for by its hash, show every log as the receipts of the
    block do, and have no bound but that of one transaction. So an index that they serve is stopped by no block.
    """

    def __init__(self, rpc: Rpc, log_filter: LogFilter) -> None:
        self._rpc = rpc
        self._filter = log_filter
        self._batches = BatchReader(rpc)

    async def first_answer(
        self, header: BlockHeader, cause: BaseException
    ) -> Sequence[msgspec.Raw]:
        """Return the logs of ours: in parts, or, when those of one part are too many, from the receipts."""
        log.warning("block has too many logs", block=header.block_number, cause=str(cause))
        try:
            return await self._in_parts(header)
        except TOO_LARGE:
            return await self._by_transaction(header)

    async def second_answer(
        self, header: BlockHeader, cause: BaseException
    ) -> Sequence[msgspec.Raw]:
        """Return the logs of ours from the receipts, or by the block's hash where the node does not give those.

        The second answer has to show a log that the first one left out, so all transactions of the block are asked
        for, and not those alone that the first answer has. When the first answer is from them too, because no other
        way is left, the same is read twice: a node that fails at times is found, and one that always lies is not.
        """
        log.warning("block has large receipts", block=header.block_number, cause=str(cause))
        try:
            return await self._by_transaction(header)
        except TOO_LARGE:
            query = self._filter.query(blockHash=header.block_hash)
            return await self._rpc.call_as(list[msgspec.Raw], GET_LOGS, query) or []

    async def _in_parts(self, header: BlockHeader) -> Sequence[msgspec.Raw]:
        """Return the logs that are found topic by topic or contract by contract, in the order of the block."""
        queries = self._filter.smaller_queries(blockHash=header.block_hash)
        calls = [(GET_LOGS, [query]) for query in queries]
        answers = await self._rpc.batch_as(list[msgspec.Raw], calls)
        texts = [text for answer in answers for text in answer or ()]
        return sorted(texts, key=_log_index)

    async def _by_transaction(self, header: BlockHeader) -> Sequence[msgspec.Raw]:
        """Return the logs in the receipts of all transactions; those of strangers are not kept in memory."""
        block = await self._rpc.call_as(_BlockHashes, _BLOCK_BY_HASH, header.block_hash, False)  # noqa: FBT003 - JSON
        if block is None or block.hash.lower() != header.block_hash:
            raise ChainInconsistent(f"the node does not have block {header.block_number}")

        def ours(receipts: Sequence[ReceiptLogs | None]) -> list[msgspec.Raw]:
            texts = logs_of(header, receipts)
            return [text.copy() for text in texts if self._filter.is_ours(text)]

        calls = [(_RECEIPT, [tx_hash]) for tx_hash in block.transactions]
        return await self._batches.read(ReceiptLogs, calls, ours)


def logs_of(header: BlockHeader, receipts: Sequence[ReceiptLogs | None]) -> list[msgspec.Raw]:
    """Return the logs of all contracts in these receipts, which must be of this block."""
    texts: list[msgspec.Raw] = []
    for receipt in receipts:
        if receipt is None or receipt.block_hash.lower() != header.block_hash:
            raise ChainInconsistent(f"receipts of another block {header.block_number}")
        texts += receipt.logs
    return texts


def decoded(decoder: "msgspec.json.Decoder[T]", text: msgspec.Raw) -> T:
    """Return a log, or a part of it; one of another shape counts as none."""
    try:
        return decoder.decode(text)
    except UNREADABLE as error:
        raise ChainUnavailable(GET_LOGS, "a log has another shape") from error


def _log_index(text: msgspec.Raw) -> int:
    return quantity_of(decoded(_NUMBERED, text).log_index, GET_LOGS)


_NAME: Final = msgspec.json.Decoder(LogName)
_NUMBERED: Final = msgspec.json.Decoder(_NumberedLog)
