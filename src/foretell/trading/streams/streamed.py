"""Live orders and unsettled trades as the user channel keeps them."""

import msgspec

from foretell.domain.exchange.effects import OrderPlaced, OrderRestored
from foretell.domain.exchange.trade_references import trade_order_ids
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.trading.trades import TradeRow
from foretell.trading.wire.orders import OrderView, view_of_command, view_of_restored


class StreamedOrder(msgspec.Struct, gc=False):
    """A live order: the effect that it came with, and its fills so far."""

    source: OrderPlaced | OrderRestored
    matched_units: int
    trade_ids: tuple[str, ...]

    @property
    def signer(self) -> Address:
        """The account of the order."""
        source = self.source
        return source.command.order.signer if isinstance(source, OrderPlaced) else source.signer

    @property
    def condition_id(self) -> Bytes32:
        """The market of the order."""
        source = self.source
        if isinstance(source, OrderPlaced):
            return source.command.condition_id
        return source.condition_id

    def view(self) -> OrderView:
        """Return the order's fixed fields; most orders are never published to anyone."""
        source = self.source
        if isinstance(source, OrderPlaced):
            return view_of_command(source.command, source.size_units)
        return view_of_restored(source)


class StreamedTrade(msgspec.Struct, gc=False):
    """An unsettled trade, and the signers of its orders."""

    row: TradeRow
    signer_by_order: dict[Bytes32, Address]

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The signers of the trade's orders, the taker first."""
        order_ids = trade_order_ids(self.row.trade)
        return tuple(dict.fromkeys(self.signer_by_order[order_id] for order_id in order_ids))
