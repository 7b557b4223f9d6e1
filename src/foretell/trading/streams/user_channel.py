"""The user channel: what happens to an account's orders and trades.

An account is the address that signs: whichever of its keys placed an order, all its connections hear
of it. The channel keeps what it must say of every live order and unsettled trade, so that it can
speak of them when the engine's own state has moved on already.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import msgspec

from foretell.domain.contracts.wallets import Wallets
from foretell.domain.errors.families import ForetellError, Unauthenticated
from foretell.domain.exchange.effects import (
    CloseReason,
    Effect,
    OrderClosed,
    OrderFilled,
    OrderPlaced,
    OrderRestored,
    TradeAdvanced,
    TradeMatched,
    TradeRestored,
    TradeSplit,
)
from foretell.domain.exchange.order import OrderStatus
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.edge.auth import L2Caller
from foretell.engine.protocol.requests import CommittedCommand
from foretell.store.trading.trades import TradeRow
from foretell.trading.books.books import PublicBooks
from foretell.trading.refusals import trading_body
from foretell.trading.streams.connection import CLOSE_POLICY, CLOSE_TRY_LATER, Connection
from foretell.trading.streams.messages import order_text, trade_text
from foretell.trading.streams.subscription import Subscription
from foretell.trading.wire.orders import (
    OrderView,
    OutcomeOf,
    order_record,
    trade_record,
    view_of_command,
    view_of_restored,
)

MARKETS_PER_CONNECTION_MAX: Final = 500

CheckSet = Callable[[str, str, str], Awaitable[L2Caller]]
"""Checks a whole set of credentials: key id, secret, passphrase."""

_FINAL: Final = frozenset({TradeStatus.CONFIRMED, TradeStatus.FAILED})


class StreamAuth(msgspec.Struct):
    """A set of credentials as clients spell it."""

    secret: str = ""
    passphrase: str = ""
    api_key: str = msgspec.field(name="apiKey", default="")
    api_key_lower: str = msgspec.field(name="apikey", default="")
    api_key_snake: str = msgspec.field(name="api_key", default="")
    key: str = ""

    @property
    def key_id(self) -> str:
        """The key, however it was spelled."""
        return self.api_key or self.api_key_lower or self.api_key_snake or self.key


class UserSubscription(msgspec.Struct):
    """What a client sends on the user channel."""

    type: str | None = None
    operation: str | None = None
    auth: StreamAuth | None = None
    markets: list[str] = []


_DECODER: Final = msgspec.json.Decoder(UserSubscription)
_TYPES: Final = frozenset({None, "user"})
_OPERATIONS: Final = frozenset({None, "subscribe", "unsubscribe"})


class _Live(msgspec.Struct, gc=False):
    view: OrderView
    matched_units: int
    trade_ids: tuple[str, ...]


class _Unsettled(msgspec.Struct, gc=False):
    row: TradeRow
    signer_by_order: dict[Bytes32, Address]

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Who has a part in it, the taker first."""
        trade = self.row.trade
        ids = [trade.taker_order_id, *(fill.maker_order_id for fill in trade.fills)]
        return tuple(dict.fromkeys(self.signer_by_order[order_id] for order_id in ids))


class UserChannel:
    """Which connections belong to which account, and what is told to them."""

    def __init__(
        self,
        books: PublicBooks,
        outcome_of: OutcomeOf,
        wallets: Wallets,
        check_set: CheckSet,
        stamp: Callable[[int], str],
    ) -> None:
        self._books = books
        self._outcome_of = outcome_of
        self._wallets = wallets
        self._check_set = check_set
        self._stamp = stamp
        self._wish_by_connection: dict[Connection, Subscription] = {}
        self._connections_by_address: dict[Address, dict[Connection, None]] = {}
        self._live: dict[Bytes32, _Live] = {}
        self._unsettled: dict[str, _Unsettled] = {}

    def leave(self, connection: Connection) -> None:
        """Tell a connection nothing more."""
        wish = self._wish_by_connection.pop(connection, None)
        if wish is not None:
            address = wish.caller.address
            del self._connections_by_address[address][connection]
            if not self._connections_by_address[address]:
                del self._connections_by_address[address]

    def key_ids(self) -> set[str]:
        """Return the keys that any connection was opened with."""
        return {wish.caller.key_id for wish in self._wish_by_connection.values()}

    def revoke(self, key_id: str) -> None:
        """End every connection that was opened with a key."""
        for connection, wish in list(self._wish_by_connection.items()):
            if wish.caller.key_id == key_id:
                connection.close(CLOSE_POLICY)
                self.leave(connection)

    async def handle(self, connection: Connection, text: str) -> None:
        """Take a message of a client; the first one says who it is."""
        try:
            wanted = _DECODER.decode(text)
        except (msgspec.MsgspecError, RecursionError):
            connection.refuse()
            return
        kind = None if wanted.type is None else wanted.type.lower()
        markets = [market.lower() for market in wanted.markets]
        if kind not in _TYPES or wanted.operation not in _OPERATIONS:
            connection.refuse()
            return
        wish = self._wish_by_connection.get(connection) or await self._admit(connection, wanted)
        if wish is None:
            return
        if wish.size + len(markets) > MARKETS_PER_CONNECTION_MAX:
            connection.refuse()
        elif wanted.operation == "unsubscribe":
            wish.remove(markets)
        else:
            wish.add(markets)

    def on_committed(self, committed: CommittedCommand) -> None:
        """Tell accounts what a command did: of orders first, of trades afterwards."""
        later: list[tuple[_Unsettled, int]] = []
        for effect in committed.effects:
            match effect:
                case OrderPlaced():
                    self._place(effect, committed)
                case OrderFilled():
                    self._fill(effect, committed.sequence)
                case OrderClosed():
                    self._close(effect, committed.sequence)
                case TradeMatched():
                    later.append((self._match(effect.trade, committed), effect.trade.matched_at_ms))
                case TradeAdvanced() | TradeSplit():
                    later += self._move(effect)
                case _:
                    self._restore(effect, committed.sequence)
        for unsettled, at_ms in later:
            self._tell_trade(unsettled, at_ms, committed.sequence)

    def forget(self, is_theirs: Callable[[Bytes32], bool]) -> None:
        """Forget the orders and trades of some markets: they are told anew."""
        self._live = {
            order_id: live
            for order_id, live in self._live.items()
            if not is_theirs(live.view.condition_id)
        }
        self._unsettled = {
            trade_id: unsettled
            for trade_id, unsettled in self._unsettled.items()
            if not is_theirs(unsettled.row.trade.condition_id)
        }

    async def _admit(self, connection: Connection, wanted: UserSubscription) -> Subscription | None:
        auth = wanted.auth or StreamAuth()
        try:
            caller = await self._check_set(auth.key_id, auth.secret, auth.passphrase)
        except ForetellError as refusal:
            is_unknown = isinstance(refusal, Unauthenticated)
            connection.put(msgspec.json.encode(trading_body(refusal)[1]).decode())
            connection.close(CLOSE_POLICY if is_unknown else CLOSE_TRY_LATER)
            return None
        wish = self._wish_by_connection[connection] = Subscription(caller)
        self._connections_by_address.setdefault(caller.address, {})[connection] = None
        connection.is_subscribed = True
        return wish

    def _place(self, placed: OrderPlaced, committed: CommittedCommand) -> None:
        command = placed.command
        view = view_of_command(command, placed.size_units)
        trade_ids = tuple(
            effect.trade.trade_id
            for effect in committed.effects
            if isinstance(effect, TradeMatched)
        )
        live = _Live(view, placed.matched_units, trade_ids)
        if placed.status is OrderStatus.LIVE:
            self._live[command.order_id] = live
        fresh = _Live(view, 0, ())
        self._tell_order(fresh, OrderStatus.LIVE, "PLACEMENT", command.at_ms, committed.sequence)
        if placed.status is not OrderStatus.LIVE or placed.matched_units:
            self._tell_order(
                live,
                placed.status,
                "UPDATE",
                command.at_ms,
                committed.sequence,
                placed.close_reason,
            )

    def _fill(self, filled: OrderFilled, sequence: int) -> None:
        live = self._live[filled.order_id]
        live.matched_units = filled.size_units - filled.remaining_units
        live.trade_ids = (*live.trade_ids, filled.trade_id)
        if filled.status is not OrderStatus.LIVE:
            del self._live[filled.order_id]
        reason = filled.close_reason
        self._tell_order(live, filled.status, "UPDATE", filled.at_ms, sequence, reason)

    def _close(self, closed: OrderClosed, sequence: int) -> None:
        live = self._live.pop(closed.order_id)
        kind = "UPDATE" if closed.reason is CloseReason.DUST else "CANCELLATION"
        self._tell_order(live, closed.status, kind, closed.at_ms, sequence, closed.reason)

    def _row(self, trade: Trade, sequence: int) -> TradeRow:
        """Return a trade as it is at its match."""
        market = self._books.market_by_id[trade.condition_id]
        return TradeRow(
            trade=trade,
            sequence=sequence,
            token_id=market.token(is_yes=trade.is_yes),
            fill_tokens=tuple(market.token(is_yes=fill.is_yes) for fill in trade.fills),
            status=TradeStatus.MATCHED,
            tx_hash="",
            updated_at_ms=trade.matched_at_ms,
        )

    def _restore(self, effect: Effect, sequence: int) -> None:
        """Learn, without telling anybody, what there was before this process began."""
        if isinstance(effect, OrderRestored):
            view = view_of_restored(effect)
            self._live[effect.order_id] = _Live(view, effect.matched_units, effect.trade_ids)
        elif isinstance(effect, TradeRestored):
            row = self._row(effect.trade, sequence)
            row = row._replace(status=effect.status, tx_hash=effect.tx_hash)
            self._unsettled[effect.trade.trade_id] = _Unsettled(row, effect.signer_by_order)

    def _match(self, trade: Trade, committed: CommittedCommand) -> _Unsettled:
        row = self._row(trade, committed.sequence)
        signers = {
            fill.maker_order_id: self._live[fill.maker_order_id].view.signer for fill in trade.fills
        }
        signers[trade.taker_order_id] = _placer(committed.effects)
        unsettled = _Unsettled(row, signers)
        self._unsettled[trade.trade_id] = unsettled
        return unsettled

    def _move(self, moved: TradeAdvanced | TradeSplit) -> list[tuple[_Unsettled, int]]:
        return self._advance(moved) if isinstance(moved, TradeAdvanced) else self._divide(moved)

    def _advance(self, advanced: TradeAdvanced) -> list[tuple[_Unsettled, int]]:
        """Return how the trade stands after this step; a command may take several."""
        known = self._unsettled[advanced.trade_id]
        row = known.row._replace(
            status=advanced.status, tx_hash=advanced.tx_hash, updated_at_ms=advanced.at_ms
        )
        known = _Unsettled(row, known.signer_by_order)
        if advanced.status in _FINAL:
            del self._unsettled[advanced.trade_id]
        else:
            self._unsettled[advanced.trade_id] = known
        return [(known, advanced.at_ms)]

    def _divide(self, split: TradeSplit) -> list[tuple[_Unsettled, int]]:
        """Return how a trade stands without the fills that left it, and what those are now."""
        known = self._unsettled[split.kept.trade_id]
        whole = known.row
        token_by_order = {
            fill.maker_order_id: token
            for fill, token in zip(whole.trade.fills, whole.fill_tokens, strict=True)
        }
        divided = []
        for trade in (split.kept, *split.parts):
            row = whole._replace(
                trade=trade,
                fill_tokens=tuple(token_by_order[fill.maker_order_id] for fill in trade.fills),
                updated_at_ms=split.at_ms,
            )
            self._unsettled[trade.trade_id] = _Unsettled(row, known.signer_by_order)
            divided.append((self._unsettled[trade.trade_id], split.at_ms))
        for part in split.parts:
            self._move_fills(whole.trade.trade_id, part)
        return divided

    def _move_fills(self, whole_id: str, part: Trade) -> None:
        """Have the live orders of a part name it: its makers' instead of what it left."""
        taker = self._live.get(part.taker_order_id)
        if taker is not None:
            taker.trade_ids = (*taker.trade_ids, part.trade_id)
        for fill in part.fills:
            maker = self._live.get(fill.maker_order_id)
            if maker is not None:
                maker.trade_ids = tuple(
                    part.trade_id if trade_id == whole_id else trade_id
                    for trade_id in maker.trade_ids
                )

    def _tell_order(
        self,
        live: _Live,
        status: OrderStatus,
        kind: str,
        at_ms: int,
        sequence: int,
        reason: CloseReason | None = None,
    ) -> None:
        view = live.view
        connections = self._listeners(view.signer, view.condition_id)
        if connections:
            outcome = self._outcome_of(view.condition_id, view.is_yes)
            record = order_record(view, status, live.matched_units, live.trade_ids, outcome, reason)
            self._say(connections, sequence, order_text(record, kind, at_ms))

    def _tell_trade(self, unsettled: _Unsettled, at_ms: int, sequence: int) -> None:
        row = unsettled.row
        market = self._books.market_by_id[row.trade.condition_id]
        for address in unsettled.addresses:
            connections = self._listeners(address, market.condition_id)
            if connections:
                record = trade_record(
                    row,
                    self._wallets.of(address),
                    self._outcome_of,
                    market.rules.fee_rate_bps,
                )
                self._say(connections, sequence, trade_text(record, at_ms))

    def _listeners(self, address: Address, condition_id: Bytes32) -> list[Connection]:
        return [
            connection
            for connection in self._connections_by_address.get(address, ())
            if self._wish_by_connection[connection].wants(condition_id)
        ]

    def _say(self, connections: Iterable[Connection], sequence: int, text: str) -> None:
        stamp = self._stamp(sequence)
        for connection in connections:
            connection.say(stamp, text)


def _placer(effects: Sequence[Effect]) -> Address:
    """Return who signed the order that a command placed: that is the first thing it tells."""
    placed = effects[0]
    assert isinstance(placed, OrderPlaced)
    return placed.command.order.signer
