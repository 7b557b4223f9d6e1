"""Logs of the contracts by `eth_getLogs` alone, each checked on its own.

This reads the chain in another way than the indexer: without headers, filters and receipts, and with a
decoder of its own. What a node leaves out shows as a difference from the tables.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from foretell.chain.rpc import Rpc
from foretell.domain.errors.chain import ChainInconsistent, RpcRefused
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
    span = BLOCKS_PER_REQUEST_FIRST
    while first <= last:
        end = min(last, first + span - 1)
        try:
            found = await rpc.call("eth_getLogs", _query(contracts, first, end))
        except RpcRefused:
            if end == first:
                raise
            span = max(1, span // 2)
            continue
        checked = _checked(found, contracts, first, end)
        fitting = span * LOGS_PER_REQUEST // max(1, len(checked.logs))
        del found
        yield checked
        first, span = end + 1, max(1, min(BLOCKS_PER_REQUEST_MAX, span * 2, fitting))


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


def _query(contracts: Collection[str], first: int, last: int) -> dict[str, Any]:
    return {"address": sorted(contracts), "fromBlock": hex(first), "toBlock": hex(last)}


def _checked(found: Any, contracts: Collection[str], first: int, last: int) -> FetchedBlocks:
    try:
        logs = [_log(each) for each in found]
        hashes = [
            (log.block_number, each["blockHash"].lower())
            for log, each in zip(logs, found, strict=True)
        ]
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ChainInconsistent("a log of no known shape") from error
    places = [(log.block_number, log.log_index) for log in logs]
    if places != sorted(set(places)) or any(each.get("removed") for each in found):
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
