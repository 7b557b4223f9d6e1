"""Orders that wait for their release, found by id, by wallet, by market and by time.

Anybody can have many orders wait, so nothing here searches all of them.
"""

import heapq
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.signing.stops import standing_of
from foretell.domain.values.hexadecimal import Address, Bytes32

Group = TypeVar("Group")


class DelayedOrder(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An order that waits for its release, in no book.

    `asset` and `need_units` are what it reserves.
    """

    command: PlaceOrder
    due_ms: int
    asset: AssetId
    need_units: int

    @property
    def nonce(self) -> int:
        """What a nonce or a stop of its maker ends it by."""
        return standing_of(self.command.order)

    @property
    def size_units(self) -> int:
        """The tokens that it asks for or offers."""
        size_units = self.command.terms.size_units
        return self.command.order.taker_amount if size_units is None else size_units


class Delays:
    """The delays of the markets that have one, and the orders that wait, in the order of their arrival."""

    __slots__ = ("_added", "_by_market", "_by_wallet", "_dues", "ms_by_market", "orders")

    def __init__(self) -> None:
        self.ms_by_market: dict[Bytes32, int] = {}
        self.orders: dict[Bytes32, DelayedOrder] = {}
        self._added = 0
        self._by_market: dict[Bytes32, dict[Bytes32, DelayedOrder]] = {}
        self._by_wallet: dict[Address, dict[Bytes32, DelayedOrder]] = {}
        self._dues: list[tuple[int, int, Bytes32]] = []
        """The times of release, those of orders that are gone included until they are the first."""

    def add(self, order: DelayedOrder) -> None:
        """Have an order wait."""
        command, order_id = order.command, order.command.order_id
        self.orders[order_id] = order
        self._by_market.setdefault(command.condition_id, {})[order_id] = order
        self._by_wallet.setdefault(command.order.maker, {})[order_id] = order
        self._added += 1
        heapq.heappush(self._dues, (order.due_ms, self._added, order_id))

    def take(self, order_id: Bytes32) -> DelayedOrder | None:
        """Remove an order that waits; None if it does not."""
        order = self.orders.pop(order_id, None)
        if order is not None:
            _remove(self._by_market, order.command.condition_id, order_id)
            _remove(self._by_wallet, order.command.order.maker, order_id)
        return order

    def of(self, wallet: Address) -> list[DelayedOrder]:
        """Return the orders of a wallet, the newest first."""
        return list(reversed(self._by_wallet.get(wallet, {}).values()))

    def in_market(self, condition_id: Bytes32) -> Iterator[DelayedOrder]:
        """Yield the orders of a market, the oldest first."""
        yield from self._by_market.get(condition_id, {}).values()

    def count_of(self, wallet: Address) -> int:
        """Return the number of a wallet's orders."""
        return len(self._by_wallet.get(wallet, ()))

    def next_ms(self) -> int | None:
        """Return the time of the next release."""
        dues = self._dues
        while dues and not self._is_waiting(dues[0]):
            heapq.heappop(dues)
        return dues[0][0] if dues else None

    def due(self, at_ms: int) -> list[DelayedOrder]:
        """Return the orders whose time has come, the earliest first; they wait on."""
        found: list[tuple[int, int, Bytes32]] = []
        while (next_ms := self.next_ms()) is not None and next_ms <= at_ms:
            found.append(heapq.heappop(self._dues))
        for entry in found:
            heapq.heappush(self._dues, entry)
        return [self.orders[order_id] for _, _, order_id in found]

    def _is_waiting(self, entry: tuple[int, int, Bytes32]) -> bool:
        order = self.orders.get(entry[2])
        return order is not None and order.due_ms == entry[0]


def _remove(
    by_group: dict[Group, dict[Bytes32, DelayedOrder]], group: Group, order_id: Bytes32
) -> None:
    """Remove an order from its group, and the group with its last order."""
    del by_group[group][order_id]
    if not by_group[group]:
        del by_group[group]
