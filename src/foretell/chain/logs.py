"""Read the logs of our contracts, block by block, and check each answer against a second one.

A node may leave logs out, repeat them, or switch to another block between two requests. So every
block is read with its header, the headers must form a chain, and every log must belong to one of
them. Where a header's bloom filter does not exclude our contracts, the logs of the block are
fetched in a second way, and both answers must be equal. Answers that do not match are refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import (
    BlockHeader,
    RawBlock,
    RawLog,
    ReceiptLogs,
    quantity_of,
    read_header,
)
from foretell.domain.contracts.log_decoder import decode_with, schemas_of, topics_of
from foretell.domain.contracts.logs import ContractKind, LogPlace, PlacedLog
from foretell.domain.errors.chain import ChainInconsistent, ChainUnavailable, RpcRefused
from foretell.domain.evm.bloom import BloomQuery
from foretell.domain.values.hexadecimal import Address, Bytes32, address_bytes

BLOCKS_PER_READ_MAX: Final = 500

_GET_LOGS: Final = "eth_getLogs"
_GET_RECEIPTS: Final = "eth_getBlockReceipts"


@dataclass(frozen=True, slots=True)
class BlockLogs:
    """A block, the decoded logs of our contracts, and how many of their logs were ignored."""

    header: BlockHeader
    logs: tuple[PlacedLog, ...]
    ignored: int


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
        self._schemas = {each: schemas_of(kind) for each, kind in kind_by_contract.items()}
        self._blocks_max = blocks_per_read_max
        self._span = blocks_per_read_max
        self._has_receipts = has_receipts
        self._topics = frozenset().union(*map(topics_of, kind_by_contract.values()))
        self._bloom = BloomQuery(
            [address_bytes(address) for address in kind_by_contract],
            [bytes.fromhex(topic[2:]) for topic in self._topics],
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
                logs = await self._fetch_logs(first, end)
            except RpcRefused:
                if end == first:
                    raise
                self._span = (end - first + 1) // 2
                continue
            except ChainUnavailable:
                self._span = max(1, self._span // 2)
                raise
            self._span = min(self._blocks_max, self._span * 2)
            headers = await self._fetch_headers(first, end)
            _check_chain(headers, parent_hash)
            return await self._checked(headers, logs)

    async def _fetch_logs(self, first: int, last: int) -> list[RawLog]:
        query = {
            "fromBlock": hex(first),
            "toBlock": hex(last),
            **self._filter(),
        }
        found = await self._rpc.call_as(list[RawLog], _GET_LOGS, query)
        if found is None:
            raise ChainUnavailable(_GET_LOGS, "no logs and no error")
        return found

    def _filter(self) -> dict[str, Any]:
        return {"address": list(self._schemas), "topics": [sorted(self._topics)]}

    async def _fetch_headers(self, first: int, last: int) -> list[BlockHeader]:
        numbers = range(first, last + 1)
        calls = [("eth_getBlockByNumber", [hex(number), False]) for number in numbers]
        headers = []
        for number, found in zip(numbers, await self._rpc.batch_as(RawBlock, calls), strict=True):
            header = None if found is None else read_header(found)
            if header is None or header.block_number != number:
                raise ChainInconsistent(f"the node does not have block {number}")
            headers.append(header)
        return headers

    async def _checked(
        self, headers: Sequence[BlockHeader], logs: Sequence[RawLog]
    ) -> list[BlockLogs]:
        logs_by_hash: dict[str, list[RawLog]] = {header.block_hash: [] for header in headers}
        for log in logs:
            of_block = logs_by_hash.get(log.block_hash) or logs_by_hash.get(log.block_hash.lower())
            if of_block is None:
                raise ChainInconsistent("a log of a block that is not in the chain")
            of_block.append(log)
        candidates = [header for header in headers if self._bloom.may_be_in(header.logs_bloom)]
        again_by_hash = await self._fetch_again(candidates)
        for header in headers:
            again = again_by_hash.get(header.block_hash, [])
            _check_logs(header, logs_by_hash[header.block_hash], again)
        return [self._placed(header, logs_by_hash[header.block_hash]) for header in headers]

    async def _fetch_again(self, headers: Sequence[BlockHeader]) -> dict[str, list[RawLog]]:
        """Return the logs of blocks, fetched in the second way."""
        if not self._has_receipts:
            queries = [{"blockHash": header.block_hash, **self._filter()} for header in headers]
            answers = await self._rpc.batch_as(
                list[RawLog], [(_GET_LOGS, [query]) for query in queries]
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
            header.block_hash: self._ours_of(found)
            for header, found in zip(headers, receipts, strict=True)
        }

    def _ours_of(self, receipts: Sequence[ReceiptLogs] | None) -> list[RawLog]:
        if receipts is None:
            raise ChainInconsistent("a block without receipts")
        return [log for receipt in receipts for log in receipt.logs if self._is_ours(log)]

    def _is_ours(self, log: RawLog) -> bool:
        if not log.topics:
            return False
        address, topic = log.address, log.topics[0]
        if address in self._schemas and topic in self._topics:
            return True
        return address.lower() in self._schemas and topic.lower() in self._topics

    def _placed(self, header: BlockHeader, logs: Sequence[RawLog]) -> BlockLogs:
        placed = []
        schemas, number, block_hash = self._schemas, header.block_number, header.block_hash
        for raw in logs:
            contract = Address(raw.address.lower())
            log = decode_with(schemas[contract], raw.topics, raw.data)
            if log is not None:
                index, tx_hash = int(raw.log_index, 16), Bytes32(raw.transaction_hash.lower())
                place = LogPlace(number, block_hash, header.timestamp_s, index, tx_hash)
                placed.append(PlacedLog(place, contract, log))
        return BlockLogs(header, tuple(placed), len(logs) - len(placed))


def _check_chain(headers: Sequence[BlockHeader], parent_hash: Bytes32 | None) -> None:
    """Refuse headers that do not form a chain on top of the parent, if there is one."""
    expected = parent_hash
    for header in headers:
        if expected is not None and header.parent_hash != expected:
            raise ChainInconsistent(f"block {header.block_number} has another parent")
        expected = header.block_hash


def _check_logs(header: BlockHeader, logs: Sequence[RawLog], again: Sequence[RawLog]) -> None:
    """Refuse logs that are out of order, repeated or removed, or differ from the second answer."""
    indexes = [quantity_of(log.log_index, _GET_LOGS) for log in logs]
    if indexes != sorted(set(indexes)) or any(log.removed for log in logs):
        raise ChainInconsistent(f"the logs of block {header.block_number} are out of order")
    # Nodes write both answers alike, letter by letter; only if not, they are compared by what they say.
    if logs != again and list(map(_identity, logs)) != list(map(_identity, again)):
        raise ChainInconsistent(f"two answers on the logs of block {header.block_number} differ")


def _identity(log: RawLog) -> tuple[object, ...]:
    return (
        quantity_of(log.block_number, _GET_LOGS),
        log.block_hash.lower(),
        quantity_of(log.log_index, _GET_LOGS),
        log.transaction_hash.lower(),
        log.address.lower(),
        [topic.lower() for topic in log.topics],
        log.data.lower(),
    )
