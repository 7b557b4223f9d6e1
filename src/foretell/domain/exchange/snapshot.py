"""Encoding of the engine's whole state.

The bytes hold all that a later command may depend on. Lists keep the order that decides something:
orders as they came to rest, the assets of a wallet as their accounts were created. Books, queues,
reservations and expiries are rebuilt from these. So a state has the same bytes after a replay and
after a restore from a snapshot.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

import msgspec

from foretell.domain.errors.storage import SnapshotUnknown
from foretell.domain.exchange.allocations import Allocation, Allocations, Total
from foretell.domain.exchange.book import is_bid
from foretell.domain.exchange.commands import ObserveChain, OpenMarket
from foretell.domain.exchange.ledger import AssetId, Ledger, LiveOrder, Move
from foretell.domain.exchange.order import OrderStatus, OrderType, Side, SignedOrder
from foretell.domain.exchange.signing.stops import StopKind
from foretell.domain.exchange.state import (
    PLACEMENTS_KEPT_MAX,
    Market,
    Placement,
    State,
    UnsettledTrade,
)
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.exchange.trade_references import newest_trade_ids
from foretell.domain.exchange.waiting.delays import DelayedOrder
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.domain.values.versioned import Versioned

VERSION: Final = 2
ORDER_ID_BYTES: Final = 32


class _Market(msgspec.Struct, frozen=True, array_like=True):
    opened: OpenMarket
    ticks_per_one: int
    is_open: bool
    last_price_ticks: int | None
    last_side: Side | None
    changed_at_ms: int
    forgotten_order_ids: bytes


class _Order(msgspec.Struct, frozen=True, array_like=True):
    order_id: Bytes32
    condition_id: Bytes32
    maker: Address
    signer: Address
    owner: str
    side: Side
    is_yes: bool
    price_ticks: int
    size_units: int
    remaining_units: int
    order_type: OrderType
    leaves_at_s: int | None
    placed_at_ms: int
    nonce: int
    trade_ids: tuple[str, ...]


class _UnsettledTrade(msgspec.Struct, frozen=True, array_like=True):
    trade: Trade
    order: SignedOrder
    has_budget: bool
    status: TradeStatus
    tx_hash: str
    moves: tuple[Move, ...]
    signer_by_order: dict[Bytes32, Address]


class _Account(msgspec.Struct, frozen=True, array_like=True):
    wallet: Address
    asset: AssetId
    confirmed_units: int
    credit_units: int
    debit_units: int


class _Allowance(msgspec.Struct, frozen=True, array_like=True):
    wallet: Address
    exchange: Address
    is_collateral: bool
    units: int


class _Allocation(msgspec.Struct, frozen=True, array_like=True):
    wallet: Address
    given: Total
    returned: Total
    settled: Total


class _Nonce(msgspec.Struct, frozen=True, array_like=True):
    exchange: Address
    maker: Address
    nonce: int


OrderForm = TypeVar("OrderForm")
PlacementForm = TypeVar("PlacementForm")


class _Body(msgspec.Struct, Generic[OrderForm, PlacementForm], frozen=True, array_like=True):
    """A state; the two long lists are read raw, so that their entries are decoded one by one."""

    version: int
    latest_ms: int
    observed_block: int
    observed_hash: Bytes32
    observed_parts: list[ObserveChain]
    markets: list[_Market]
    accounts: list[_Account]
    allowances: list[_Allowance]
    orders: list[OrderForm]
    unsettled: list[_UnsettledTrade]
    placements: list[PlacementForm]
    canceled_orders: list[tuple[Address, Bytes32]]
    maker_nonces: list[_Nonce]
    shard: str
    allocations: list[_Allocation]


class _FullBody(
    _Body[OrderForm, PlacementForm], Generic[OrderForm, PlacementForm], frozen=True, array_like=True
):
    """A state with barred wallets, halted markets or stops; without them it has the bytes of before."""

    barred_wallets: list[tuple[Address, str]] = []
    halted_markets: list[Bytes32] = []
    maker_stops: list[tuple[Address, Address, StopKind, int]] = []


class _DelayingBody(
    _FullBody[OrderForm, PlacementForm],
    Generic[OrderForm, PlacementForm],
    frozen=True,
    array_like=True,
):
    """A state with markets that delay orders, or with orders that are delayed."""

    delays: list[tuple[Bytes32, int]] = []
    delayed_orders: list[DelayedOrder] = []


class _CancelingBody(
    _DelayingBody[OrderForm, PlacementForm],
    Generic[OrderForm, PlacementForm],
    frozen=True,
    array_like=True,
):
    """A state with more orders that were canceled on the chain than one generation of them has."""

    canceled_earlier: list[tuple[Address, Bytes32]] = []


_WRITTEN: Final = Versioned(VERSION, _Body[_Order, Placement])
_READ: Final = Versioned(VERSION, _CancelingBody[msgspec.Raw, msgspec.Raw])
_ORDER: Final = msgspec.msgpack.Decoder(_Order)
_PLACEMENT: Final = msgspec.msgpack.Decoder(Placement)


def encode_state(state: State) -> bytes:
    """Return the bytes of a state between two commands; equal states have equal bytes."""
    body = _Body(
        version=VERSION,
        latest_ms=state.latest_ms,
        observed_block=state.observed_block,
        observed_hash=state.observed_hash,
        observed_parts=state.observed_parts,
        markets=[_market(market) for market in state.market_by_id.values()],
        accounts=list(_accounts(state.ledger)),
        allowances=[_Allowance(*key, units) for key, units in state.ledger.allowances()],
        orders=[_order(order) for order in state.live_orders.values()],
        unsettled=[_unsettled(each) for each in state.unsettled_trades.values()],
        placements=list(state.placement_by_order.values()),
        canceled_orders=sorted(state.canceled_orders),
        maker_nonces=[_Nonce(*key, nonce) for key, nonce in state.maker_nonces.items()],
        shard=state.allocations.shard,
        allocations=[
            _Allocation(wallet, *each.totals())
            for wallet, each in state.allocations.allocation_by_wallet.items()
        ],
    )
    has_earlier = bool(state.canceled_earlier)
    is_delaying = has_earlier or bool(state.delays.ms_by_market or state.delays.orders)
    if not (state.barred_wallets or state.halted_markets or state.maker_stops or is_delaying):
        return _WRITTEN.encode(body)
    fields: dict[str, Any] = msgspec.structs.asdict(body)
    fields["barred_wallets"] = list(state.barred_wallets.items())
    fields["halted_markets"] = list(state.halted_markets)
    fields["maker_stops"] = [(*key, value) for key, value in state.maker_stops.items()]
    if not is_delaying:
        return _WRITTEN.encode(_FullBody(**fields))
    fields["delays"] = list(state.delays.ms_by_market.items())
    fields["delayed_orders"] = list(state.delays.orders.values())
    if not has_earlier:
        return _WRITTEN.encode(_DelayingBody(**fields))
    fields["canceled_earlier"] = sorted(state.canceled_earlier)
    return _WRITTEN.encode(_CancelingBody(**fields))


def state_digest(state: State) -> str:
    """Return the SHA-256 of a state's bytes as 64 hex digits."""
    return hashlib.sha256(encode_state(state)).hexdigest()


def decode_state(raw: bytes, placements_kept_max: int = PLACEMENTS_KEPT_MAX) -> State:
    """Return the decoded state, or refuse bytes of an unknown version."""
    body = _READ.decode(raw)
    try:
        return _restored_state(body, placements_kept_max)
    except msgspec.MsgspecError as error:
        raise SnapshotUnknown(str(error)) from error


def _restored_state(
    body: _CancelingBody[msgspec.Raw, msgspec.Raw], placements_kept_max: int
) -> State:
    state = State(placements_kept_max)
    state.latest_ms = body.latest_ms
    state.observed_block, state.observed_hash = body.observed_block, body.observed_hash
    state.observed_parts = body.observed_parts
    for market in body.markets:
        state.add(_restored_market(market))
    for account in body.accounts:
        _restore_account(state.ledger, account)
    for seen in body.allowances:
        state.ledger.allow(seen.wallet, seen.exchange, seen.units, of_collateral=seen.is_collateral)
    for raw_order in body.orders:
        order = _restored_order(state, _ORDER.decode(raw_order))
        state.rest(order, order.reserved_units(), is_by_age=True)
    for unsettled in body.unsettled:
        state.unsettled_trades[unsettled.trade.trade_id] = UnsettledTrade(
            state.market_by_id[unsettled.trade.condition_id].opened,
            unsettled.trade,
            unsettled.order,
            unsettled.has_budget,
            unsettled.status,
            unsettled.tx_hash,
            unsettled.signer_by_order,
        )
    owners: dict[str, str] = {}
    for raw_placement in body.placements:
        _restore_placement(state, _PLACEMENT.decode(raw_placement), owners)
    state.canceled_orders = set(body.canceled_orders)
    state.canceled_earlier = set(body.canceled_earlier)
    state.maker_nonces = {(each.exchange, each.maker): each.nonce for each in body.maker_nonces}
    state.allocations = _restored_allocations(body)
    state.barred_wallets = dict(body.barred_wallets)
    state.halted_markets = dict.fromkeys(body.halted_markets)
    state.maker_stops = {
        (exchange, maker, kind): value for exchange, maker, kind, value in body.maker_stops
    }
    state.delays.ms_by_market = dict(body.delays)
    for delayed in body.delayed_orders:
        state.delays.add(delayed)
        waiting = state.ledger.account(delayed.command.order.maker, delayed.asset)
        waiting.reserved_units += delayed.need_units
    return state


def _restored_allocations(body: _Body[msgspec.Raw, msgspec.Raw]) -> Allocations:
    return Allocations(
        body.shard,
        {
            each.wallet: Allocation.of_totals(each.given, each.returned, each.settled)
            for each in body.allocations
        },
    )


def _market(market: Market) -> _Market:
    return _Market(
        opened=market.opened,
        ticks_per_one=market.rules.ticks_per_one,
        is_open=market.is_open,
        last_price_ticks=market.last_price_ticks,
        last_side=market.last_side,
        changed_at_ms=market.changed_at_ms,
        forgotten_order_ids=b"".join(sorted(market.forgotten_order_ids)),
    )


def _restored_market(seen: _Market) -> Market:
    market = Market(seen.opened)
    market.change_tick(seen.ticks_per_one)
    market.is_open = seen.is_open
    market.last_price_ticks, market.last_side = seen.last_price_ticks, seen.last_side
    market.changed_at_ms = seen.changed_at_ms
    packed = seen.forgotten_order_ids
    assert len(packed) % ORDER_ID_BYTES == 0
    market.forgotten_order_ids = {
        packed[start : start + ORDER_ID_BYTES] for start in range(0, len(packed), ORDER_ID_BYTES)
    }
    return market


def _accounts(ledger: Ledger) -> Iterator[_Account]:
    for wallet, asset, account in ledger.accounts():
        yield _Account(
            wallet, asset, account.confirmed_units, account.credit_units, account.debit_units
        )


def _restore_account(ledger: Ledger, seen: _Account) -> None:
    account = ledger.account(seen.wallet, seen.asset)
    account.confirmed_units = seen.confirmed_units
    account.credit_units, account.debit_units = seen.credit_units, seen.debit_units


def _order(order: LiveOrder) -> _Order:
    return _Order(
        order_id=order.order_id,
        condition_id=order.condition_id,
        maker=order.maker,
        signer=order.signer,
        owner=order.owner,
        side=order.side,
        is_yes=order.is_yes,
        price_ticks=order.price_ticks,
        size_units=order.size_units,
        remaining_units=order.remaining_units,
        order_type=order.order_type,
        leaves_at_s=order.leaves_at_s,
        placed_at_ms=order.placed_at_ms,
        nonce=order.nonce,
        trade_ids=newest_trade_ids(order.trade_ids),
    )


def _restored_order(state: State, seen: _Order) -> LiveOrder:
    market = state.market_by_id[seen.condition_id]
    account = state.ledger.account(seen.maker, market.asset_given(seen.side, is_yes=seen.is_yes))
    side = market.book.side(is_bid=is_bid(seen.side, is_yes=seen.is_yes))
    is_buy, ticks_per_one = seen.side is Side.BUY, market.book.ticks_per_one
    order = LiveOrder()
    order.wallet, order.remaining_units = account.wallet, seen.remaining_units
    order.level = side.level(seen.price_ticks if is_buy else ticks_per_one - seen.price_ticks)
    order.account = account
    order.order_id = seen.order_id
    order.condition_id = market.opened.condition_id
    order.signer = seen.signer
    order.owner = seen.owner
    order.side = seen.side
    is_whole = seen.remaining_units == seen.size_units
    order.size_units = seen.remaining_units if is_whole else seen.size_units
    order.order_type = seen.order_type
    order.leaves_at_s = seen.leaves_at_s
    order.placed_at_ms = seen.placed_at_ms
    order.nonce = seen.nonce
    order.trade_ids = newest_trade_ids(seen.trade_ids)
    return order


def _restore_placement(state: State, seen: Placement, owners: dict[str, str]) -> None:
    """Keep a placement, or the live order that it can be made of, with strings that are known."""
    order = state.live_orders.get(seen.order_id)
    if order is not None and seen.status is OrderStatus.LIVE and not seen.trade_ids:
        state.placed[order.order_id] = order
        return
    state.placed[seen.order_id] = Placement(
        seen.order_id,
        state.market_by_id[seen.condition_id].opened.condition_id,
        owners.setdefault(seen.owner, seen.owner),
        seen.order_type,
        seen.leaves_at_s,
        seen.status,
        seen.making_units,
        seen.taking_units,
        seen.trade_ids,
    )


def _unsettled(unsettled: UnsettledTrade) -> _UnsettledTrade:
    return _UnsettledTrade(
        unsettled.trade,
        unsettled.order,
        unsettled.has_budget,
        unsettled.status,
        unsettled.tx_hash,
        unsettled.moves,
        unsettled.signer_by_order,
    )
