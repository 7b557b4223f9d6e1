from typing import Any

import pytest

from foretell.sdk.orders import BookLevel
from foretell.sdk.streaming.book import LiveBook

TOKEN, OTHER = "7", "8"


def a_book(token: str = TOKEN, **fields: Any) -> dict[str, Any]:
    bids = [{"price": "0.3", "size": "5"}, {"price": "0.4", "size": "10"}]
    asks = [{"price": "0.6", "size": "1"}, {"price": "0.55", "size": "2"}]
    whole = {"event_type": "book", "asset_id": token, "bids": bids, "asks": asks, "hash": "aa"}
    return whole | {"journal_sequence": 3} | fields


def a_change(price: str, size: str, side: str = "BUY", token: str = TOKEN) -> dict[str, Any]:
    change = {"asset_id": token, "price": price, "size": size, "side": side, "hash": "bb"}
    return {"event_type": "price_change", "price_changes": [change], "journal_sequence": 4}


def test_a_whole_book_is_sorted_from_its_best_price() -> None:
    book = LiveBook(TOKEN)
    assert book.apply(a_book())
    assert (book.best_bid, book.best_ask) == (BookLevel("0.4", "10"), BookLevel("0.55", "2"))
    assert [each.price for each in book.sorted_bids()] == ["0.4", "0.3"]
    assert [each.price for each in book.sorted_asks()] == ["0.55", "0.6"]
    assert (book.hash, book.journal_sequence) == ("aa", 3)


@pytest.mark.parametrize(
    ("change", "best"),
    [
        (a_change("0.45", "1"), BookLevel("0.45", "1")),
        (a_change("0.4", "2"), BookLevel("0.4", "2")),
        (a_change("0.40", "0"), BookLevel("0.3", "5")),
        (a_change("0.3", "0"), BookLevel("0.4", "10")),
    ],
)
def test_a_change_sets_a_level_or_removes_it(change: dict[str, Any], best: BookLevel) -> None:
    book = LiveBook(TOKEN)
    book.apply(a_book())
    assert book.apply(change)
    assert (book.best_bid, book.hash, book.journal_sequence) == (best, "bb", 4)


def test_an_empty_side_has_no_best_price() -> None:
    book = LiveBook(TOKEN)
    book.apply(a_book(bids=[], asks=[]))
    assert (book.best_bid, book.best_ask) == (None, None)
    assert book.apply(a_change("0.7", "3", "SELL"))
    assert book.best_ask == BookLevel("0.7", "3")


@pytest.mark.parametrize(
    "message",
    [
        a_book(OTHER),
        a_change("0.9", "1", token=OTHER),
        {"event_type": "last_trade_price", "asset_id": TOKEN, "price": "0.9"},
    ],
    ids=lambda message: message["event_type"],
)
def test_messages_of_others_change_nothing(message: dict[str, Any]) -> None:
    book = LiveBook(TOKEN)
    book.apply(a_book())
    assert not book.apply(message)
    assert book.best_bid == BookLevel("0.4", "10")


def test_a_forgotten_book_takes_no_change_before_a_whole_book() -> None:
    book = LiveBook(TOKEN)
    book.apply(a_book())
    book.forget()
    assert not book.apply(a_change("0.45", "1"))
    assert (book.best_bid, book.is_known) == (None, False)
    assert book.apply(a_book())
