"""The user channel: the changes of an account's orders and trades.

An account is the address that signs: all its connections receive an order's changes, with whichever
of its keys the order was placed. The channel keeps the live orders and the unsettled trades itself,
because the engine's own state may already be ahead of the commands that are published.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

import msgspec

from foretell.domain.contracts.wallets import Wallets
from foretell.domain.errors.families import ForetellError, Unauthenticated
from foretell.domain.errors.streams import TooManySubscriptions
from foretell.domain.exchange.commands import PlaceOrder, ReleaseOrder
from foretell.domain.exchange.decision import Canceled, Done, Placed, order_closed, trades_of
from foretell.domain.exchange.effects import (
    CloseReason,
    Effect,
    OrderClosed,
    OrderFilled,
    OrderRestored,
    OrderReturned,
    TradeAdvanced,
    TradeFailed,
    TradeRestored,
    TradeSplit,
)
from foretell.domain.exchange.order import OrderStatus
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.exchange.trade_references import (
    newest_trade_ids,
    trade_ids_after_split,
    trade_ids_with,
    trade_order_ids,
)
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.edge.auth import L2Caller
from foretell.engine.protocol.requests import CommittedCommand
from foretell.trading.books.books import PublicBooks
from foretell.trading.refusals import trading_body
from foretell.trading.streams.connection import CLOSE_POLICY, CLOSE_TRY_LATER, Connection
from foretell.trading.streams.messages import order_text, trade_text
from foretell.trading.streams.open_streams import OpenStreams
from foretell.trading.streams.requests import (
    PING_OPERATION,
    StreamAuth,
    UserChannelRequest,
    check_request,
    decode_message,
)
from foretell.trading.streams.streamed import StreamedOrder, StreamedTrade, closing_cause
from foretell.trading.streams.subscription import Subscription
from foretell.trading.wire.orders import OutcomeOf, order_record, trade_record

MARKETS_PER_CONNECTION_MAX: Final = 500

Authenticate = Callable[[StreamAuth], Awaitable[L2Caller]]
"""Returns the caller of credentials, or refuses."""

_FINAL: Final = frozenset({TradeStatus.CONFIRMED, TradeStatus.FAILED})


CHANNEL: Final = "user"
_DECODER: Final = msgspec.json.Decoder(UserChannelRequest)


class UserChannel:
    """The connections of each account, and the messages for them."""

    def __init__(
        self,
        books: PublicBooks,
        outcome_of: OutcomeOf,
        wallets: Wallets,
        authenticate: Authenticate,
        streams: OpenStreams,
    ) -> None:
        self._books = books
        self._outcome_of = outcome_of
        self._wallets = wallets
        self._authenticate = authenticate
        self._streams = streams
        self._subscription_by_connection: dict[Connection, Subscription] = {}
        self._connections_by_address: dict[Address, dict[Connection, None]] = {}
        self._live: dict[Bytes32, StreamedOrder] = {}
        self._unsettled: dict[str, StreamedTrade] = {}

    @property
    def live_orders(self) -> Mapping[Bytes32, StreamedOrder]:
        """The live orders, by id."""
        return self._live

    @property
    def unsettled_trades(self) -> Mapping[str, StreamedTrade]:
        """The unsettled trades, by id."""
        return self._unsettled

    def leave(self, connection: Connection) -> None:
        """Remove a connection."""
        subscription = self._subscription_by_connection.pop(connection, None)
        if subscription is not None:
            address = subscription.caller.address
            del self._connections_by_address[address][connection]
            if not self._connections_by_address[address]:
                del self._connections_by_address[address]

    def login_of(self, connection: Connection) -> L2Caller | None:
        """Return the holder of the key that a connection was opened with, None before that."""
        subscription = self._subscription_by_connection.get(connection)
        return None if subscription is None else subscription.caller

    def key_ids(self) -> set[str]:
        """Return the keys that connections were opened with."""
        return {each.caller.key_id for each in self._subscription_by_connection.values()}

    def revoke(self, key_id: str) -> None:
        """Close every connection that was opened with a key."""
        for connection, subscription in list(self._subscription_by_connection.items()):
            if subscription.caller.key_id == key_id:
                connection.close(CLOSE_POLICY)
                self.leave(connection)

    async def handle(self, connection: Connection, text: str) -> None:
        """Handle a message of a client; the first one must have its credentials."""
        try:
            await self._handle(connection, decode_message(text, _DECODER))
        except ForetellError as refusal:
            connection.refuse(refusal)

    async def _handle(self, connection: Connection, request: UserChannelRequest) -> None:
        check_request(CHANNEL, request.type, request.operation)
        subscription = self._subscription_by_connection.get(connection)
        if subscription is None:
            subscription = await self._log_in(connection, request.auth or StreamAuth())
        if subscription is None:
            return
        if request.operation == PING_OPERATION:
            connection.beat(self._streams.now_ms())
            return
        resumed = None
        if request.stream_id is not None:
            resumed = self._resume(connection, request.stream_id, request.sequence)
        if request.heartbeat is not None:
            connection.has_heartbeat = request.heartbeat
        if request.markets or resumed is None:
            _change(resumed or subscription, request)

    def _resume(self, connection: Connection, stream_id: str, after: int) -> Subscription | None:
        """Have a connection go on with a stream of the same key, and return its subscription."""
        own = self._subscription_by_connection[connection]
        former = self._streams.resume(
            connection,
            stream_id,
            after,
            is_first=not (own.covers_all or own.size),
            is_owner=lambda found: self.login_of(found) == own.caller,
        )
        if former is None:
            return None
        subscription = self._subscription_by_connection[former]
        self.leave(former)
        self._subscription_by_connection[connection] = subscription
        return subscription

    def on_committed(self, committed: CommittedCommand) -> None:
        """Publish a command to the accounts: orders first, trades afterwards."""
        sequence = committed.sequence
        changed: list[StreamedTrade] = []
        match committed.decision:
            case Placed() as placed:
                changed = self._take_placed(committed.placing, placed, sequence)
            case Canceled() as canceled:
                for order in canceled.orders:
                    closed = order_closed(order, CloseReason.CANCELED, committed.at_ms)
                    self._close(closed, sequence)
            case Done() as done:
                changed = [
                    each for effect in done.effects for each in self._take_effect(effect, committed)
                ]
        for unsettled in changed:
            self._publish_trade(unsettled, sequence)

    def forget(self, is_theirs: Callable[[Bytes32], bool]) -> None:
        """Forget the orders and trades of some markets: they are published again."""
        self._live = {
            order_id: live
            for order_id, live in self._live.items()
            if not is_theirs(live.condition_id)
        }
        self._unsettled = {
            trade_id: unsettled
            for trade_id, unsettled in self._unsettled.items()
            if not is_theirs(unsettled.trade.condition_id)
        }

    async def _log_in(self, connection: Connection, auth: StreamAuth) -> Subscription | None:
        """Return the subscription of a connection, or refuse its credentials and close it."""
        try:
            caller = await self._authenticate(auth)
        except ForetellError as refusal:
            is_unknown = isinstance(refusal, Unauthenticated)
            connection.send_struct(trading_body(refusal)[1])
            connection.close(CLOSE_POLICY if is_unknown else CLOSE_TRY_LATER)
            return None
        subscription = self._subscription_by_connection[connection] = Subscription(caller)
        self._connections_by_address.setdefault(caller.address, {})[connection] = None
        connection.is_subscribed = True
        return subscription

    def _take_placed(
        self, command: PlaceOrder, placed: Placed, sequence: int
    ) -> list[StreamedTrade]:
        """Publish an order and the orders that it changed; return its trades."""
        at_ms = command.at_ms
        self._place(command, placed, sequence)
        for own in placed.own_orders:
            self._close(order_closed(own, CloseReason.SELF_TRADE, at_ms), sequence)
        matched = []
        for trade, fills in trades_of(placed, at_ms):
            matched.append(self._match(trade, command.order.signer, sequence))
            for filled in fills:
                self._fill(filled, sequence)
        for dusty in placed.dust_orders:
            self._close(order_closed(dusty, CloseReason.DUST, at_ms), sequence)
        return matched

    def _take_effect(self, effect: Effect, committed: CommittedCommand) -> list[StreamedTrade]:
        """Publish or keep an effect that is not about a new order; return the trades that changed.

        Orders and trades from before this process began are kept without publishing them.
        """
        match effect:
            case OrderClosed():
                self._close(effect, committed.sequence, closing_cause(effect, committed))
            case TradeFailed():
                self._unsettled[effect.trade_id].cause = effect.cause
            case TradeAdvanced():
                return [self._advance(effect)]
            case TradeSplit():
                return self._divide(effect)
            case OrderRestored():
                self._live[effect.order_id] = StreamedOrder(
                    effect, effect.size_units, effect.matched_units, effect.trade_ids
                )
            case OrderReturned():
                self._return(effect, committed.sequence)
            case TradeRestored():
                self._unsettled[effect.trade.trade_id] = StreamedTrade(
                    effect.trade,
                    committed.sequence,
                    effect.status,
                    effect.tx_hash,
                    effect.trade.matched_at_ms,
                    effect.signer_by_order,
                )
            case _:
                pass
        return []

    def _place(self, command: PlaceOrder, placed: Placed, sequence: int) -> None:
        trade_ids = newest_trade_ids(tuple([trade.trade_id for trade in placed.trades]))
        live = StreamedOrder(command, placed.size_units, placed.matched_units, trade_ids)
        status, is_release = placed.status, isinstance(command, ReleaseOrder)
        if status in {OrderStatus.LIVE, OrderStatus.DELAYED}:
            self._live[command.order_id] = live
        else:
            self._live.pop(command.order_id, None)
        if command.order.signer not in self._connections_by_address:
            return
        first = OrderStatus.DELAYED if placed.is_delayed else OrderStatus.LIVE
        fresh = StreamedOrder(command, placed.size_units, 0, ())
        if not is_release:
            self._publish_order(fresh, first, "PLACEMENT", command.at_ms, sequence)
        if is_release or status is not first or placed.matched_units:
            self._publish_order(
                live, status, "UPDATE", command.at_ms, sequence, placed.close_reason
            )

    def _fill(self, filled: OrderFilled, sequence: int) -> None:
        live = self._live[filled.order_id]
        live.matched_units = filled.size_units - filled.remaining_units
        live.trade_ids = trade_ids_with(live.trade_ids, filled.trade_id)
        if filled.status is not OrderStatus.LIVE:
            del self._live[filled.order_id]
        reason = filled.close_reason
        self._publish_order(live, filled.status, "UPDATE", filled.at_ms, sequence, reason)

    def _return(self, returned: OrderReturned, sequence: int) -> None:
        """Publish an order that is live with more to trade, because a trade of it failed."""
        order = returned.order
        live = StreamedOrder(order, order.size_units, order.matched_units, order.trade_ids)
        self._live[order.order_id] = live
        self._publish_order(live, OrderStatus.LIVE, "UPDATE", returned.at_ms, sequence)

    def _close(self, closed: OrderClosed, sequence: int, cause: str | None = None) -> None:
        live = self._live.pop(closed.order_id)
        live.close_cause = cause
        kind = "UPDATE" if closed.reason is CloseReason.DUST else "CANCELLATION"
        self._publish_order(live, closed.status, kind, closed.at_ms, sequence, closed.reason)

    def _match(self, trade: Trade, taker: Address, sequence: int) -> StreamedTrade:
        """Keep a new trade, while the orders that it filled are still live."""
        signers = {
            fill.maker_order_id: self._live[fill.maker_order_id].signer for fill in trade.fills
        }
        signers[trade.taker_order_id] = taker
        at_ms = trade.matched_at_ms
        unsettled = StreamedTrade(trade, sequence, TradeStatus.MATCHED, "", at_ms, signers)
        self._unsettled[trade.trade_id] = unsettled
        return unsettled

    def _advance(self, advanced: TradeAdvanced) -> StreamedTrade:
        """Return the trade after this step; a command may take several steps."""
        known = msgspec.structs.replace(
            self._unsettled[advanced.trade_id],
            status=advanced.status,
            tx_hash=advanced.tx_hash,
            updated_at_ms=advanced.at_ms,
        )
        if advanced.status in _FINAL:
            del self._unsettled[advanced.trade_id]
        else:
            self._unsettled[advanced.trade_id] = known
        return known

    def _divide(self, split: TradeSplit) -> list[StreamedTrade]:
        """Return a trade without the fills that left it, and the trades of those fills."""
        whole = self._unsettled[split.kept.trade_id]
        divided = [
            msgspec.structs.replace(whole, trade=trade, updated_at_ms=split.at_ms)
            for trade in (split.kept, *split.parts)
        ]
        self._unsettled.update({part.trade.trade_id: part for part in divided})
        for part in split.parts:
            self._name_part(whole.trade.trade_id, part)
        return divided

    def _name_part(self, whole_id: str, part: Trade) -> None:
        """Have the live orders of a part of a trade name the part."""
        for order_id in trade_order_ids(part):
            live = self._live.get(order_id)
            if live is not None:
                live.trade_ids = trade_ids_after_split(live.trade_ids, order_id, part, whole_id)

    def _publish_order(
        self,
        live: StreamedOrder,
        status: OrderStatus,
        kind: str,
        at_ms: int,
        sequence: int,
        reason: CloseReason | None = None,
    ) -> None:
        connections = self._subscribers(live.signer, live.condition_id)
        if connections:
            view = live.view()
            outcome = self._outcome_of(view.condition_id, view.is_yes)
            record = order_record(view, status, live.matched_units, live.trade_ids, outcome, reason)
            self._send(connections, sequence, order_text(record, kind, at_ms, live.close_cause))

    def _publish_trade(self, unsettled: StreamedTrade, sequence: int) -> None:
        market = self._books.market_by_id[unsettled.trade.condition_id]
        row = None
        for address in unsettled.addresses if self._connections_by_address else ():
            connections = self._subscribers(address, market.condition_id)
            if connections:
                row = row or unsettled.row(market.opened)
                record = trade_record(
                    row,
                    self._wallets.of(address),
                    self._outcome_of,
                    market.rules.fee_rate_bps,
                )
                self._send(connections, sequence, trade_text(record, unsettled.updated_at_ms))

    def _subscribers(self, address: Address, condition_id: Bytes32) -> list[Connection]:
        return [
            connection
            for connection in self._connections_by_address.get(address, ())
            if self._subscription_by_connection[connection].covers(condition_id)
        ]

    def _send(self, connections: Iterable[Connection], sequence: int, text: str) -> None:
        message = self._streams.message(sequence, text)
        for connection in connections:
            connection.send(message)


def _change(subscription: Subscription, request: UserChannelRequest) -> None:
    """Add the markets that a message names to a subscription, or remove them."""
    markets = [market.lower() for market in request.markets]
    size = subscription.size + len(markets)
    if size > MARKETS_PER_CONNECTION_MAX:
        raise TooManySubscriptions("markets", size, MARKETS_PER_CONNECTION_MAX)
    if request.operation == "unsubscribe":
        subscription.remove(markets)
    else:
        subscription.add(markets)
