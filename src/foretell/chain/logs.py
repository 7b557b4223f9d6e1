"""Read the logs of our contracts, block by block, and check each answer against a second one.

A node may leave logs out, repeat them, or switch to another block between two requests. So every
block is read with its header, the headers must form a chain, and every log must belong to one of
them. Where a header's bloom filter does not exclude our contracts, the logs of the block are
fetched in a second way, which names the block's hash, and both answers must be equal. Answers that
do not match are refused. One answer is decoded while the node sends the other. Nodes write both
alike, letter by letter, so the second is usually compared without being decoded.

An answer that is too large halves the range, and that on a single block is read in other ways.
"""

import asyncio
import contextlib
import itertools
import operator
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from foretell.chain.rpc import CALLS_PER_BATCH_MAX, Rpc
from foretell.chain.rpc_types import (
    BlockHeader,
    RawBlock,
    RawLog,
    ReceiptLogs,
    quantity_of,
    read_header,
)
from foretell.chain.smaller_reads import (
    GET_LOGS,
    TOO_LARGE,
    UNREADABLE,
    LogFilter,
    SingleBlockReader,
    decoded,
    logs_of,
)
from foretell.domain.contracts.log_decoder import decode_with, schemas_of, topics_of
from foretell.domain.contracts.log_schemas import LogSchema
from foretell.domain.contracts.logs import ContractKind, LogPlace, PlacedLog
from foretell.domain.errors.chain import ChainInconsistent, ChainUnavailable, RpcRefused
from foretell.domain.evm.bloom import BloomQuery
from foretell.domain.values.hexadecimal import Address, Bytes32, address_bytes

BLOCKS_PER_READ_MAX: Final = 500
LOGS_PER_TURN: Final = 500
"""The logs that are decoded, at least, before the event loop does something else: it takes a millisecond or two."""

T = TypeVar("T")

_GET_RECEIPTS: Final = "eth_getBlockReceipts"


class _Contract(NamedTuple):
    """A contract whose logs are read, and their schemas by first topic."""

    address: Address
    schemas: dict[str, LogSchema]


@dataclass(frozen=True, slots=True)
class BlockLogs:
    """A block, the decoded logs of our contracts, and how many of their logs were ignored."""

    header: BlockHeader
    logs: tuple[PlacedLog, ...]
    ignored: int


class _ReadBlock(NamedTuple):
    """A block as the first answer has it, and how the node has written each of its logs, the ignored ones included."""

    block: BlockLogs
    texts: Sequence[msgspec.Raw]


class LogReader:
    """Reads of the logs of some contracts.

    The second way fetches all receipts of a block. Without `has_receipts`, for nodes that do not
    serve them, it fetches the logs by the block's hash, which is less independent.
    """

    def __init__(
        self,
        rpc: Rpc,
        kind_by_contract: Mapping[Address, ContractKind],
        *,
        blocks_per_read_max: int = BLOCKS_PER_READ_MAX,
        has_receipts: bool = True,
    ) -> None:
        assert kind_by_contract
        self._rpc = rpc
        self._contracts: dict[str, _Contract] = {
            each: _Contract(each, dict(schemas_of(kind))) for each, kind in kind_by_contract.items()
        }
        self._blocks_max = blocks_per_read_max
        self._span = blocks_per_read_max
        self._has_receipts = has_receipts
        topics = frozenset().union(*map(topics_of, kind_by_contract.values()))
        self._filter = LogFilter(self._contracts, topics)
        self._single = SingleBlockReader(rpc, self._filter)
        self._bloom = BloomQuery(
            [address_bytes(address) for address in kind_by_contract],
            [bytes.fromhex(topic[2:]) for topic in topics],
        )

    async def read(
        self, first: int, last: int, parent_hash: Bytes32 | None = None
    ) -> list[BlockLogs]:
        """Return blocks from the first on, at most up to the last, as many as the node gives at once.

        Raises ChainInconsistent when `parent_hash` is not the first block's parent, or when answers
        do not match: after a reorg, or by a fault of the node. Read again then.
        """
        assert first <= last
        while True:
            end = min(last, first + self._span - 1)
            try:
                blocks = await self._read_range(first, end, parent_hash)
            except TOO_LARGE:
                if end == first:
                    raise
                self._span = (end - first + 1) // 2
            except ChainUnavailable:
                self._span = max(1, self._span // 2)
                raise
            else:
                self._span = min(self._blocks_max, self._span * 2)
                return blocks

    async def _read_range(
        self, first: int, last: int, parent_hash: Bytes32 | None
    ) -> list[BlockLogs]:
        """Return these blocks; an answer on several of them may be too large."""
        async with _beside([self._fetch_logs(first, last)]) as (fetching,):
            headers = await self._fetch_headers(first, last)
            _check_chain(headers, parent_hash)
            candidates = [each for each in headers if self._bloom.may_be_in(each.logs_bloom)]
            async with _beside(self._fetches_again(candidates)) as fetching_again:
                texts = await self._first_answer(fetching, headers)
                blocks = await self._read_blocks(headers, texts)
                return await self._checked(blocks, fetching_again)

    async def _first_answer(
        self, fetching: "asyncio.Task[list[msgspec.Raw]]", headers: Sequence[BlockHeader]
    ) -> Sequence[msgspec.Raw]:
        """Return the logs of blocks, of a single one in any way that the node serves."""
        try:
            return await fetching
        except TOO_LARGE as error:
            if len(headers) > 1:
                raise
            return await self._single.first_answer(headers[0], error)

    async def _fetch_logs(self, first: int, last: int) -> list[msgspec.Raw]:
        query = self._filter.query(fromBlock=hex(first), toBlock=hex(last))
        found = await self._rpc.call_as(list[msgspec.Raw], GET_LOGS, query)
        if found is None:
            raise ChainUnavailable(GET_LOGS, "no logs and no error")
        return found

    async def _fetch_headers(self, first: int, last: int) -> list[BlockHeader]:
        numbers = range(first, last + 1)
        calls = [("eth_getBlockByNumber", [hex(number), False]) for number in numbers]
        answers: list[RawBlock | None] = []
        async with _beside(
            [self._rpc.batch_as(RawBlock, part) for part in _batches(calls)]
        ) as parts:
            for part in parts:
                answers += await part
        headers = []
        for number, found in zip(numbers, answers, strict=True):
            header = None if found is None else read_header(found)
            if header is None or header.block_number != number:
                raise ChainInconsistent(f"the node does not have block {number}")
            headers.append(header)
        return headers

    async def _read_blocks(
        self, headers: Sequence[BlockHeader], texts: Sequence[msgspec.Raw]
    ) -> list[_ReadBlock]:
        """Return the blocks with their logs; refuse logs of an unknown block, and blocks that alternate.

        A block's raw logs are freed before those of the next are made: memory that was just used is the fastest.
        In between, the loop receives what the node sends, so that the node never waits for a full socket.
        """
        header_by_hash = {header.block_hash: header for header in headers}
        read_by_hash: dict[str, _ReadBlock] = {}
        start, turn_ends_at = 0, LOGS_PER_TURN
        try:
            for block_text, run in itertools.groupby(map(_LOG.decode, texts), _BLOCK_HASH):
                logs = list(run)
                header = header_by_hash.pop(block_text.lower(), None)
                if header is None:
                    raise ChainInconsistent(
                        "a log of a block that is not in the chain, or not in its order"
                    )
                block = self._placed(header, logs, _checked_indexes(header, logs))
                end = start + len(logs)
                read_by_hash[header.block_hash] = _ReadBlock(block, texts[start:end])
                start = end
                if end >= turn_ends_at:
                    turn_ends_at = end + LOGS_PER_TURN
                    await asyncio.sleep(0)
        except UNREADABLE as error:
            raise ChainUnavailable(GET_LOGS, "a log has another shape") from error
        return [
            read_by_hash.get(header.block_hash) or _ReadBlock(BlockLogs(header, (), 0), ())
            for header in headers
        ]

    async def _checked(
        self,
        blocks: Sequence[_ReadBlock],
        fetching_again: Sequence["asyncio.Task[dict[str, Sequence[msgspec.Raw]]]"],
    ) -> list[BlockLogs]:
        """Return the blocks, if the second answers say the same of them."""
        again_by_hash: dict[str, Sequence[msgspec.Raw]] = {}
        for part in fetching_again:
            again_by_hash |= await part
        for block, texts in blocks:
            again = again_by_hash.get(block.header.block_hash, ())
            self._check_again(block.header, texts, again)
        return [block for block, _ in blocks]

    def _fetches_again(
        self, headers: Sequence[BlockHeader]
    ) -> list[Coroutine[Any, Any, dict[str, Sequence[msgspec.Raw]]]]:
        """Return the requests for the logs of blocks in the second way; the node works at all of them at once."""
        return [self._fetch_again(part) for part in _batches(headers)]

    async def _fetch_again(
        self, headers: Sequence[BlockHeader]
    ) -> dict[str, Sequence[msgspec.Raw]]:
        """Return the second answer on blocks, on a single one in any way that the node serves."""
        try:
            return await self._fetch_second(headers)
        except (ChainUnavailable, RpcRefused) as error:
            # A node may be silent for too long while it puts the receipts of a block together.
            if len(headers) > 1:
                raise
            (header,) = headers
            return {header.block_hash: await self._single.second_answer(header, error)}

    async def _fetch_second(
        self, headers: Sequence[BlockHeader]
    ) -> dict[str, Sequence[msgspec.Raw]]:
        """Return the logs of blocks, fetched in the second way; those of other contracts may be among them."""
        if not self._has_receipts:
            queries = [self._filter.query(blockHash=header.block_hash) for header in headers]
            answers = await self._rpc.batch_as(
                list[msgspec.Raw], [(GET_LOGS, [query]) for query in queries]
            )
            return {
                header.block_hash: found or []
                for header, found in zip(headers, answers, strict=True)
            }
        receipts = await self._rpc.batch_as(
            list[ReceiptLogs],
            [(_GET_RECEIPTS, [hex(header.block_number)]) for header in headers],
        )
        return {
            header.block_hash: _logs_in(header, found)
            for header, found in zip(headers, receipts, strict=True)
        }

    def _check_again(
        self, header: BlockHeader, texts: Sequence[msgspec.Raw], again: Sequence[msgspec.Raw]
    ) -> None:
        """Refuse logs that are not those of the second answer."""
        if texts == again:
            return
        others = _without(again, texts)
        if others is not None and not any(map(self._filter.is_ours, others)):
            return
        # The node writes the two answers in different ways, or they differ.
        first = [decoded(_LOG, text) for text in texts]
        logs = [decoded(_LOG, text) for text in again if self._filter.is_ours(text)]
        is_removed = any(log.removed for log in logs)
        if is_removed or list(map(_identity, first)) != list(map(_identity, logs)):
            raise ChainInconsistent(
                f"two answers on the logs of block {header.block_number} differ"
            )

    def _placed(
        self, header: BlockHeader, logs: Sequence[RawLog], indexes: Sequence[int]
    ) -> BlockLogs:
        placed = []
        contracts, number, block_hash = self._contracts, header.block_number, header.block_hash
        tx_text, tx_hash = "", Bytes32("")
        for index, raw in zip(indexes, logs, strict=True):
            contract = contracts.get(raw.address) or contracts.get(raw.address.lower())
            if contract is None:
                raise ChainInconsistent(f"a log of another contract in block {number}")
            log = decode_with(contract.schemas, raw.topics, raw.data)
            if log is not None:
                if raw.transaction_hash != tx_text:
                    tx_text = raw.transaction_hash
                    tx_hash = Bytes32(tx_text.lower())
                place = LogPlace(number, block_hash, header.timestamp_s, index, tx_hash)
                placed.append(PlacedLog(place, contract.address, log))
        return BlockLogs(header, tuple(placed), len(logs) - len(placed))


def _batches(calls: Sequence[T]) -> list[Sequence[T]]:
    """Return the parts of some calls that a request each may have."""
    starts = range(0, len(calls), CALLS_PER_BATCH_MAX)
    return [calls[start : start + CALLS_PER_BATCH_MAX] for start in starts]


@contextlib.asynccontextmanager
async def _beside(
    works: Sequence[Coroutine[Any, Any, T]],
) -> AsyncIterator[Sequence[asyncio.Task[T]]]:
    """Give the tasks of works that go on meanwhile; all of them end with the block."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _check_chain(headers: Sequence[BlockHeader], parent_hash: Bytes32 | None) -> None:
    """Refuse headers that do not form a chain on top of the parent, if there is one."""
    expected = parent_hash
    for header in headers:
        if expected is not None and header.parent_hash != expected:
            raise ChainInconsistent(f"block {header.block_number} has another parent")
        expected = header.block_hash


def _logs_in(header: BlockHeader, receipts: Sequence[ReceiptLogs] | None) -> Sequence[msgspec.Raw]:
    """Return the logs of all contracts; a block whose filter is not empty has receipts."""
    if not receipts:
        raise ChainInconsistent(f"block {header.block_number} without receipts")
    return logs_of(header, receipts)


def _checked_indexes(header: BlockHeader, logs: Sequence[RawLog]) -> Sequence[int]:
    """Return the indexes of a block's logs; refuse logs that are out of order, repeated or removed."""
    try:
        indexes = [int(log.log_index, 16) for log in logs]
    except ValueError as error:
        raise ChainUnavailable(GET_LOGS, "the answer is not a number") from error
    if indexes != sorted(set(indexes)) or any([log.removed for log in logs]):  # noqa: C419 - a list is faster here
        raise ChainInconsistent(f"the logs of block {header.block_number} are out of order")
    return indexes


def _without(
    texts: Sequence[msgspec.Raw], some: Sequence[msgspec.Raw]
) -> Sequence[msgspec.Raw] | None:
    """Return the texts that are not among these, which must all be there in their order; else None."""
    others, place = [], 0
    for text in texts:
        if place < len(some) and text == some[place]:
            place += 1
        else:
            others.append(text)
    return others if place == len(some) else None


def _identity(log: RawLog) -> tuple[object, ...]:
    return (
        quantity_of(log.block_number, GET_LOGS),
        log.block_hash.lower(),
        quantity_of(log.log_index, GET_LOGS),
        log.transaction_hash.lower(),
        log.address.lower(),
        [topic.lower() for topic in log.topics],
        log.data.lower(),
    )


_LOG: Final = msgspec.json.Decoder(RawLog)
_BLOCK_HASH: Final = operator.attrgetter("block_hash")
