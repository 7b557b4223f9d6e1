"""Resting orders of books alone, without accounts and signatures."""

from foretell.domain.exchange.book import Book, RestingOrder


class NamedOrder(RestingOrder):
    """A resting order with a name; its wallet is a name too."""

    __slots__ = ("name",)
    name: str

    def __repr__(self) -> str:  # type: ignore[explicit-override] # 3.11 has none
        return self.name


def an_order(
    book: Book[NamedOrder],
    name: str,
    yes_price_ticks: int,
    size_units: int = 100,
    *,
    is_bid: bool = True,
    wallet: str = "bob",
) -> NamedOrder:
    """Return an order for a book, which does not have it yet."""
    order = NamedOrder()
    order.name, order.wallet, order.remaining_units = name, wallet, size_units
    rank = yes_price_ticks if is_bid else book.ticks_per_one - yes_price_ticks
    order.level = book.side(is_bid=is_bid).level(rank)
    return order


def rested(*orders: NamedOrder) -> list[NamedOrder]:
    """Add the orders to their book."""
    for order in orders:
        order.level.side.add(order)
    return list(orders)
