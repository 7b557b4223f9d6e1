from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.discovery.folded_texts import BLOCKS_PER_SCAN, IDS_PER_BLOCK, FoldedTexts
from foretell.domain.values.folding import folded

pytestmark = pytest.mark.anyio

TEXTS = st.text("aB \n\x1c\u2028\u0301é", max_size=6)
IDS = st.integers(0, 3 * IDS_PER_BLOCK)
WORDS = st.lists(st.text("ab", min_size=1, max_size=2), max_size=3)


def slowly_found(texts: Mapping[int, str], words: Sequence[str], limit: int) -> list[int]:
    """Compare each text with each word."""
    ids = sorted(texts, reverse=True)
    return [each for each in ids if all(word in folded(texts[each]) for word in words)][:limit]


@given(
    st.lists(st.dictionaries(IDS, TEXTS, max_size=8), max_size=4),
    WORDS,
    st.integers(0, 6),
    st.integers(1, 20),
)
async def test_what_is_found_is_what_a_comparison_of_all_texts_finds(
    parts: Sequence[Mapping[int, str]], words: Sequence[str], limit: int, texts_max: int
) -> None:
    texts, kept = FoldedTexts(texts_max), dict[int, str]()
    for part in parts:
        texts.put(part)
        kept |= part
        kept = {each: kept[each] for each in sorted(kept)[-texts_max:]}
    assert await texts.find(words, limit) == slowly_found(kept, words, limit)


async def test_texts_of_many_blocks_are_all_searched() -> None:
    last = IDS_PER_BLOCK * (BLOCKS_PER_SCAN + 2)
    texts = FoldedTexts(2 * last)
    texts.put({row_id: "needle" if row_id % last == 0 else "hay" for row_id in range(last + 1)})
    assert await texts.find(["needle"], 5) == [last, 0]
    assert await texts.find(["hay"], last) == list(range(last - 1, 0, -1))


async def test_texts_that_are_put_meanwhile_do_not_change_a_search() -> None:
    texts = FoldedTexts(10 * IDS_PER_BLOCK)
    texts.put(dict.fromkeys(range(2 * IDS_PER_BLOCK), "hay"))
    search = texts.find(["hay"], 1_000)
    search.send(None)
    texts.put({5: "straw", 9 * IDS_PER_BLOCK: "hay"})
    with pytest.raises(StopIteration) as ended:
        search.send(None)
    assert len(ended.value.value) == 2 * IDS_PER_BLOCK
    assert await texts.find(["straw"], 5) == [5]
