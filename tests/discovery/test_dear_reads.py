import pytest

from foretell.discovery.dear_reads import DEAR_READS


@pytest.mark.parametrize(
    "query",
    [
        "order=title",
        "order=slug&ascending=true&closed=false",
        "order=bestBid&limit=20&offset=1000",
        "order=lastTradePrice&after_cursor=abc",
        "order=volume_24hr&active=true",
        "order[]=liquidity",
    ],
)
def test_an_order_along_an_index_is_cheap(query: str) -> None:
    assert not DEAR_READS["/markets"].is_dear(query.encode())


@pytest.mark.parametrize(
    "query",
    [
        "order=endDate",
        "order=title,volume",
        "order=title&order=volume",
        "order[]=title&order=volume",
        "order=title&tag_id=3",
        "order=title&limit=21",
        "order=title&offset=1001",
        "order=nothing",
    ],
)
def test_any_other_order_is_dear(query: str) -> None:
    assert DEAR_READS["/markets"].is_dear(query.encode())
