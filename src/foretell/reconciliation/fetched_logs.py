"""Logs of the contracts by `eth_getLogs` alone, each checked on its own.

This reads the chain in another way than the indexer: without headers, filters and receipts, and with a
decoder of its own. What a node leaves out shows as a difference from the tables. A single block whose logs
the node does not give at once is read contract by contract, or from the receipts of its transactions.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import header_of
from foretell.chain.smaller_reads import (
    GET_LOGS,
    TOO_LARGE,
    UNREADABLE,
    LogFilter,
    SingleBlockReader,
)
from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.values.hexadecimal import Address, Bytes32, keccak256

BLOCKS_PER_REQUEST_MAX: Final = 2_000
BLOCKS_PER_REQUEST_FIRST: Final = 100
LOGS_PER_REQUEST: Final = 10_000
"""The logs that a request should bring, which bounds the memory of them: the next one has fewer blocks, or more."""
WORD_BYTES: Final = 32
ADDRESS_DIGITS: Final = 40


class FetchedLog(NamedTuple):
    """A log in words: its topics and its data are numbers of 256 bits."""

    block_number: int
    log_index: int
    tx_hash: str
    contract: str
    topics: tuple[int, ...]
    words: tuple[int, ...]

    def numbers(self, place: int) -> tuple[int, ...]:
        """Return the list of numbers that the word at this place points to."""
        start = self.words[place] // WORD_BYTES
        return self.words[start + 1 : start + 1 + self.words[start]]


@dataclass(frozen=True, slots=True)
class FetchedBlocks:
    """The logs of some blocks in their order, and the hash of each block that has any."""

    last: int
    logs: Sequence[FetchedLog]
    hash_by_block: dict[int, Bytes32]


async def fetch_blocks(
    rpc: Rpc, contracts: Collection[str], first: int, last: int
) -> AsyncIterator[FetchedBlocks]:
    """Yield all blocks from the first to the last: few where they have many logs, or where the node gives no more.

    Raises ChainInconsistent when logs are repeated, out of order, removed or of other blocks.
    """
    log_filter, span = LogFilter(sorted(contracts)), BLOCKS_PER_REQUEST_FIRST
    while first <= last:
        end = min(last, first + span - 1)
        try:
            query = log_filter.query(fromBlock=hex(first), toBlock=hex(end))
            found: Sequence[msgspec.Raw] | None = await rpc.call_as(
                list[msgspec.Raw], GET_LOGS, query
            )
        except TOO_LARGE as error:
            if end > first:
                span = (end - first + 1) // 2
                continue
            found = await _fetch_block(rpc, log_filter, first, error)
        checked = _checked(found, contracts, first, end)
        fitting = span * LOGS_PER_REQUEST // max(1, len(checked.logs))
        del found
        yield checked
        first, span = end + 1, max(1, min(BLOCKS_PER_REQUEST_MAX, span * 2, fitting))


async def _fetch_block(
    rpc: Rpc, log_filter: LogFilter, number: int, cause: BaseException
) -> Sequence[msgspec.Raw]:
    """Return the logs of one block in another way than by its number.

    Raises AnswerTooLarge or RpcRefused when the node gives them in none.
    """
    header = header_of(await rpc.call("eth_getBlockByNumber", hex(number), False))  # noqa: FBT003 - JSON
    if header is None:
        raise ChainInconsistent(f"the node has no block {number}")
    return await SingleBlockReader(rpc, log_filter).first_answer(header, cause)


async def fetch_times(rpc: Rpc, hash_by_block: dict[int, Bytes32]) -> dict[int, int]:
    """Return the time of each block in seconds; refuse a chain that has other blocks there."""
    numbers = sorted(hash_by_block)
    calls = [("eth_getBlockByNumber", [hex(number), False]) for number in numbers]
    times: dict[int, int] = {}
    for number, found in zip(numbers, await rpc.batch(calls), strict=True):
        try:
            times[number], block_hash = int(found["timestamp"], 16), found["hash"].lower()
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ChainInconsistent(f"the node has no block {number}") from error
        if block_hash != hash_by_block[number]:
            raise ChainInconsistent(f"block {number} is another one than that of its logs")
    return times


def address_in(word: int) -> Address:
    """Return the address in a word."""
    return Address(f"0x{word % (1 << 4 * ADDRESS_DIGITS):040x}")


def word_text(word: int) -> Bytes32:
    """Return a word as text."""
    return Bytes32(f"0x{word:064x}")


def topic_of(signature: str) -> int:
    """Return the first topic of a log with this signature."""
    return int.from_bytes(keccak256(signature.encode()))


def _checked(
    found: Sequence[msgspec.Raw] | None, contracts: Collection[str], first: int, last: int
) -> FetchedBlocks:
    logs: list[FetchedLog] = []
    hashes: list[tuple[int, str]] = []
    is_any_removed = found is None
    try:
        for text in found or ():
            raw = msgspec.json.decode(text)
            logs.append(_log(raw))
            hashes.append((logs[-1].block_number, raw["blockHash"].lower()))
            is_any_removed |= bool(raw.get("removed"))
    except (TypeError, KeyError, ValueError, AttributeError, *UNREADABLE) as error:
        raise ChainInconsistent("a log of no known shape") from error
    places = [(log.block_number, log.log_index) for log in logs]
    if places != sorted(set(places)) or is_any_removed:
        raise ChainInconsistent(
            f"logs of the blocks {first} to {last} are repeated or out of order"
        )
    if any(not first <= log.block_number <= last or log.contract not in contracts for log in logs):
        raise ChainInconsistent(f"logs that are not of the blocks {first} to {last}")
    hash_by_block = {number: Bytes32(each) for number, each in hashes}
    if len(set(hashes)) != len(hash_by_block):
        raise ChainInconsistent("logs of one block have different block hashes")
    return FetchedBlocks(last, logs, hash_by_block)


def _log(found: dict[str, Any]) -> FetchedLog:
    data = bytes.fromhex(found["data"].removeprefix("0x"))
    return FetchedLog(
        int(found["blockNumber"], 16),
        int(found["logIndex"], 16),
        found["transactionHash"].lower(),
        found["address"].lower(),
        tuple(int(topic, 16) for topic in found["topics"]),
        tuple(
            int.from_bytes(data[start : start + WORD_BYTES])
            for start in range(0, len(data), WORD_BYTES)
        ),
    )
