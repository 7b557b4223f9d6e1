"""Index of a wallet's open orders, which only a wallet with many of them has.

It is no part of the state: it is made of the orders whenever there are many, after a restart as well.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from foretell.domain.values.hexadecimal import Bytes32


class IndexedOrder(Protocol):
    """What the index needs of an order."""

    owner: str
    condition_id: Bytes32


Order = TypeVar("Order", bound=IndexedOrder)


class OrderIndex(Generic[Order]):
    """The open orders of a wallet that has many, by the key that placed them and by market.

    So nothing that concerns one key or one market walks the wallet's other orders.
    """

    __slots__ = ("_by_owner",)

    def __init__(self, orders: Iterable[Order]) -> None:
        self._by_owner: dict[str, dict[Bytes32, dict[Order, None]]] = {}
        for order in orders:
            self.add(order)

    def add(self, order: Order) -> None:
        """Add an order that came to rest."""
        by_market = self._by_owner.setdefault(order.owner, {})
        by_market.setdefault(order.condition_id, {})[order] = None

    def remove(self, order: Order) -> None:
        """Remove an order that left its book."""
        by_market = self._by_owner[order.owner]
        orders = by_market[order.condition_id]
        del orders[order]
        if not orders:
            del by_market[order.condition_id]
            if not by_market:
                del self._by_owner[order.owner]

    def orders_of(self, owner: str | None, condition_id: Bytes32 | None) -> Iterator[Order]:
        """Yield the orders of a key in a market, where None stands for any."""
        keys = self._by_owner.values() if owner is None else [self._by_owner.get(owner, {})]
        for by_market in keys:
            if condition_id is not None:
                yield from by_market.get(condition_id, ())
            else:
                for orders in by_market.values():
                    yield from orders

    def count_in(self, condition_id: Bytes32) -> int:
        """Return the number of orders in a market."""
        return sum(len(each.get(condition_id, ())) for each in self._by_owner.values())
