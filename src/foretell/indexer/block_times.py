"""Times of blocks that a node is asked for again, because it may name a false one once.

A time that is stored stays: prices, standings and the days of volumes depend on it, and those of later blocks count from
there. No rule says how far apart two blocks are, so no time is refused that a second answer confirms.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from foretell.chain.reader import Reader
from foretell.chain.rpc_types import BlockHeader
from foretell.domain.errors.chain import ChainInconsistent

GAP_S_MAX: Final = 900
"""Seconds between two blocks that are believed at once."""


async def check_times(reader: Reader, headers: Sequence[BlockHeader], below_s: int | None) -> None:
    """Ask again for blocks whose time is before that of the block below them, or far after it.

    `below_s` is the time of the block below the first, if that is indexed. Raises ChainInconsistent when the second answer
    has another time or another block.
    """
    for header in _doubtful(headers, below_s):
        again = await reader.header(hex(header.block_number))
        if again is None or (again.block_hash, again.timestamp_s) != (
            header.block_hash,
            header.timestamp_s,
        ):
            raise ChainInconsistent(
                f"two answers on the time of block {header.block_number} differ"
            )


def _doubtful(headers: Sequence[BlockHeader], below_s: int | None) -> Iterator[BlockHeader]:
    """Yield the later of two blocks that are far apart; of two in the wrong order either may be false."""
    below: BlockHeader | None = None
    for header in headers:
        if below_s is None or not 0 <= header.timestamp_s - below_s <= GAP_S_MAX:
            if below is not None:
                yield below
            yield header
        below, below_s = header, header.timestamp_s
