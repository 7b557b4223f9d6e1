"""Folded texts by their ids, searched for words.

Neighbouring texts are joined to blocks, and a block without one of the words is passed over at once.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from foretell.domain.values.folding import folded

IDS_PER_BLOCK: Final = 32
BLOCKS_PER_SCAN: Final = 160
"""Blocks that are searched before the process serves other requests."""
_BETWEEN: Final = "\n"


class _Block(NamedTuple):
    """The texts of neighbouring ids, the largest id first, one in each line."""

    ids: tuple[int, ...]
    lines: str


class FoldedTexts:
    """The folded texts of the largest ids, up to a number."""

    def __init__(self, texts_max: int) -> None:
        self._texts_max = texts_max
        self._blocks: dict[int, _Block] = {}
        self._newest_first: tuple[_Block, ...] = ()

    def put(self, text_by_id: Mapping[int, str]) -> None:
        """Keep texts, in the place of former ones of their ids; the smallest ids beyond the number are dropped."""
        added: defaultdict[int, dict[int, str]] = defaultdict(dict)
        for row_id, text in text_by_id.items():
            added[row_id // IDS_PER_BLOCK][row_id] = " ".join(folded(text).split())
        for number, lines in added.items():
            known = self._blocks.get(number)
            former = {} if known is None else dict(_lines(known))
            self._blocks[number] = _block(former | lines)
        self._drop_smallest()
        self._newest_first = tuple(self._blocks[number] for number in self._numbers())

    async def find(self, words: Sequence[str], limit: int) -> list[int]:
        """Return the ids whose texts contain every word, the largest first, up to a limit."""
        found: list[int] = []
        for position, block in enumerate(self._newest_first):
            if len(found) >= limit:
                break
            if position % BLOCKS_PER_SCAN == 0:
                await asyncio.sleep(0)
            found += _ids_with(block, words)
        return found[:limit]

    def _numbers(self) -> list[int]:
        return sorted(self._blocks, reverse=True)

    def _drop_smallest(self) -> None:
        beyond = sum(len(block.ids) for block in self._blocks.values()) - self._texts_max
        for number in reversed(self._numbers()):
            if beyond <= 0:
                break
            block = self._blocks.pop(number)
            beyond -= len(block.ids)
            if beyond < 0:
                self._blocks[number] = _block(dict(_lines(block)[:-beyond]))


def _block(lines: Mapping[int, str]) -> _Block:
    ids = tuple(sorted(lines, reverse=True))
    return _Block(ids, _BETWEEN.join(lines[row_id] for row_id in ids))


def _lines(block: _Block) -> list[tuple[int, str]]:
    return list(zip(block.ids, block.lines.split(_BETWEEN), strict=True))


def _ids_with(block: _Block, words: Sequence[str]) -> list[int]:
    if not contains_all(block.lines, words):
        return []
    lines = _lines(block)
    for word in words:
        lines = [line for line in lines if word in line[1]]
    return [row_id for row_id, _ in lines]


def contains_all(text: str, words: Sequence[str]) -> bool:
    """Return whether a folded text contains every word, also as a part of a longer one."""
    return all(word in text for word in words)
