"""Live orders and unsettled trades as the user channel keeps them.

Most are never published to anyone, so what clients read of them is made when it is sent.
"""

import msgspec

from foretell.domain.exchange.commands import BarWallet, OpenMarket, PlaceOrder, decode_command
from foretell.domain.exchange.effects import CloseReason, OrderClosed, OrderRestored
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.exchange.trade_references import trade_order_ids
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.engine.protocol.requests import CommittedCommand
from foretell.store.trading.trades import TradeRow, matched_row
from foretell.trading.wire.orders import OrderView, view_of_command, view_of_restored


class StreamedOrder(msgspec.Struct, gc=False):
    """A live order: the command or the effect that it came with, and its fills so far.

    `close_cause` is why its wallet was barred, once that closed it.
    """

    source: PlaceOrder | OrderRestored
    size_units: int
    matched_units: int
    trade_ids: tuple[str, ...]
    close_cause: str | None = None

    @property
    def signer(self) -> Address:
        """The account of the order."""
        source = self.source
        return source.order.signer if isinstance(source, PlaceOrder) else source.signer

    @property
    def condition_id(self) -> Bytes32:
        """The market of the order."""
        return self.source.condition_id

    def view(self) -> OrderView:
        """Return the order's fixed fields."""
        source = self.source
        if isinstance(source, PlaceOrder):
            return view_of_command(source, self.size_units)
        return view_of_restored(source)


def closing_cause(closed: OrderClosed, committed: CommittedCommand) -> str | None:
    """Return why the wallet was barred whose order a command closed, None if another reason did."""
    if closed.reason is not CloseReason.WALLET_BARRED:
        return None
    command = decode_command(committed.payload)
    return command.cause if isinstance(command, BarWallet) else None


class StreamedTrade(msgspec.Struct, gc=False):
    """An unsettled trade, the progress of its settlement, and the signers of its orders."""

    trade: Trade
    sequence: int
    status: TradeStatus
    tx_hash: str
    updated_at_ms: int
    signer_by_order: dict[Bytes32, Address]
    cause: str = ""

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The signers of the trade's orders, the taker first."""
        order_ids = trade_order_ids(self.trade)
        return tuple(dict.fromkeys([self.signer_by_order[order_id] for order_id in order_ids]))

    def row(self, market: OpenMarket) -> TradeRow:
        """Return the trade as the tables have it."""
        return matched_row(self.trade, self.sequence, market)._replace(
            status=self.status,
            tx_hash=self.tx_hash,
            updated_at_ms=self.updated_at_ms,
            cause=self.cause,
        )
