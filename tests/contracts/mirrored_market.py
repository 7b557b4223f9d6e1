"""One market both in the engine's memory and on the contracts, with the same orders.

The engine matches, and settlement's own call settles on the exchange. The balances and orders of
both can then be compared.
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from tests.contracts.evm import Actor
from tests.contracts.scenarios.order_hashes import order_digest, signed_order
from tests.contracts.scenarios.rig import ScenarioRig, TradedPair
from tests.contracts.signing import OWN_V1, Order
from tests.rigs.values import NOW_MS, a_state, an_observation, some_rules

from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen, OpenMarket, PlaceOrder
from foretell.domain.exchange.effects import OrderPlaced, TradeMatched
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.matching import MatchType
from foretell.domain.exchange.order import (
    OrderStatus,
    OrderType,
    Side,
    SignatureType,
    SignedOrder,
    order_terms,
)
from foretell.domain.exchange.state import State
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, parse_address, word_of
from foretell.settlement.match_call import Matched, match_call
from foretell.store.trading.orders import OrderRow
from foretell.store.trading.trades import TradeRow

SETS_OF: Final = {MatchType.COMPLEMENTARY: 0, MatchType.MINT: 1, MatchType.MERGE: -1}
"""The complete sets that each kind of match creates for each token."""

Moves = Counter[tuple[Address, AssetId]]


@dataclass(frozen=True, slots=True)
class OrderSpec:
    """The terms of an order to place."""

    trader: int
    side: Side
    is_yes: bool
    price_ticks: int
    size_units: int
    order_type: OrderType = OrderType.GTC
    profile: int = OWN_V1


@dataclass
class MirroredMarket:
    """A market of the rig, and the engine's state of it."""

    rig: ScenarioRig
    pair: TradedPair
    ticks_per_one: int
    order_by_id: dict[str, OrderRow] = field(default_factory=dict)
    rig_order_by_id: dict[str, Order] = field(default_factory=dict)
    filled_by_id: Counter[str] = field(default_factory=Counter)

    @cached_property
    def state(self) -> State:
        """The engine's state, which starts with the balances on the chain."""
        held = self.held_on_chain(self.traders)
        return a_state(
            self.market,
            an_observation(
                [BalanceSeen(wallet, asset, units) for (wallet, asset), units in held.items()],
                [
                    AllowanceSeen(wallet, self.market.exchange, is_collateral, AMOUNT_UNITS_MAX)
                    for wallet in self.traders
                    for is_collateral in (True, False)
                ],
            ),
        )

    @cached_property
    def market(self) -> OpenMarket:
        """The command that opens the market."""
        return OpenMarket(
            at_ms=NOW_MS,
            condition_id=word_of(self.pair.condition),
            token_yes=AssetId(str(self.pair.pair[0])),
            token_no=AssetId(str(self.pair.pair[1])),
            exchange=parse_address(self.pair.exchange.address),
            rules=some_rules(self.ticks_per_one, size_units_min=1),
        )

    @property
    def traders(self) -> list[Address]:
        return [parse_address(actor.address) for actor in self.rig.traders]

    @property
    def others(self) -> list[Address]:
        """Accounts with balances that no match changes."""
        world = self.rig.world
        others = (
            self.market.exchange,
            world.fee_receiver,
            world.operator,
            self.pair.splitter.address,
        )
        lock = parse_address(self.pair.lock)
        return [each for each in map(parse_address, others) if each != lock]

    def place(self, spec: OrderSpec) -> list[Trade]:
        """Return the trades of an order in the engine, none when it is refused."""
        rig_order, order = self.sign(spec)
        order_id = word_of(order_digest(rig_order, self.pair.exchange))
        try:
            command = PlaceOrder(
                at_ms=NOW_MS,
                order_id=order_id,
                order=order,
                order_type=spec.order_type,
                is_post_only=False,
                owner=f"key of {order.signer}",
                condition_id=self.market.condition_id,
                is_yes=spec.is_yes,
                terms=order_terms(order, spec.order_type, self.market.rules, order_id),
            )
            effects = apply(self.state, command).effects
        except ForetellError:
            return []
        [placed] = [each for each in effects if isinstance(each, OrderPlaced)]
        self.rig_order_by_id[order_id] = rig_order
        self.order_by_id[order_id] = order_row(placed, len(self.order_by_id))
        return [each.trade for each in effects if isinstance(each, TradeMatched)]

    def sign(self, spec: OrderSpec) -> tuple[Order, SignedOrder]:
        """Return the order in the types of the rig and of the engine."""
        actor: Actor = self.rig.traders[spec.trader]
        token = self.market.token_yes if spec.is_yes else self.market.token_no
        cost = spec.size_units * spec.price_ticks // self.ticks_per_one
        given, received = (cost, spec.size_units)[:: 1 if spec.side is Side.BUY else -1]
        rig_order = Order(
            maker=actor.address,
            signer=actor.address,
            token_id=int(token),
            maker_amount=given,
            taker_amount=received,
            side=int(spec.side),
            salt=1 + len(self.order_by_id),
            profile=spec.profile,
        )
        rig_order = signed_order(rig_order, self.pair.exchange, actor.key)
        order = SignedOrder(
            salt=str(rig_order.salt),
            maker=parse_address(actor.address),
            signer=parse_address(actor.address),
            taker=ZERO_ADDRESS,
            token_id=token,
            maker_amount=given,
            taker_amount=received,
            expiration_s=0,
            nonce=0,
            fee_rate_bps=0,
            side=spec.side,
            signature_type=SignatureType.EOA,
            profile=spec.profile,
            signature=rig_order.signature,
        )
        return rig_order, order

    def settle(self, trade: Trade) -> Moves:
        """Settle a trade as settlement does, and return the changes of balances on the chain."""
        accounts = [*self.traders, *self.others, parse_address(self.pair.lock)]
        before = self.held_on_chain(accounts)
        is_packed = len(self.filled_by_id) % 2 == 0
        matched = Matched(self.trade_row(trade), self.order_by_id, self.market.exchange, is_packed)
        call = match_call(matched, trade.trade_id)
        self.rig.evm.transact(self.rig.world.operator, call.target, call.calldata)
        self.filled_by_id[trade.taker_order_id] += trade.taker_fill_units
        for fill in trade.fills:
            self.filled_by_id[fill.maker_order_id] += fill.making_units
        moved = self.held_on_chain(accounts)
        moved.subtract(before)
        return moved

    def trade_row(self, trade: Trade) -> TradeRow:
        """Return the row of a matched trade."""
        return TradeRow(
            trade=trade,
            sequence=len(self.order_by_id),
            token_id=self.market.token_yes if trade.is_yes else self.market.token_no,
            fill_tokens=tuple(
                self.market.token_yes if fill.is_yes else self.market.token_no
                for fill in trade.fills
            ),
            status=TradeStatus.MATCHED,
            tx_hash="",
            updated_at_ms=NOW_MS,
        )

    def moves(self, trade: Trade) -> Moves:
        """Return a trade's changes of balances in the engine, with created and merged sets."""
        moves: Moves = Counter()
        for wallet, asset, units in self.state.unsettled_trades[trade.trade_id].moves:
            moves[wallet, asset] += units
        moves[parse_address(self.pair.lock), COLLATERAL] += sum(
            SETS_OF[fill.match_type] * fill.size_units for fill in trade.fills
        )
        return moves

    def held_on_chain(self, wallets: list[Address]) -> Moves:
        """Return the wallets' balances of collateral and both tokens."""
        world = self.rig.world
        held: Moves = Counter()
        for wallet in wallets:
            held[wallet, COLLATERAL] = world.collateral.call("balanceOf", wallet)
            for token in self.pair.pair:
                held[wallet, AssetId(str(token))] = world.ctf.call("balanceOf", wallet, token)
        return held

    def held_in_ledger(self) -> Moves:
        """Return the traders' balances in the engine after all settlements."""
        assets = (COLLATERAL, self.market.token_yes, self.market.token_no)
        held: Moves = Counter()
        for wallet in self.traders:
            for asset in assets:
                account = self.state.ledger.look_up(wallet, asset)
                units = account.confirmed_units + account.credit_units - account.debit_units
                held[wallet, asset] = units
        return held

    def left_on_chain(self) -> dict[str, int]:
        """Return the remaining amount of each accepted order on the exchange."""
        return {
            order_id: self.pair.exchange.call("remaining", order.fields)
            for order_id, order in self.rig_order_by_id.items()
        }

    def left_by_trades(self) -> dict[str, int]:
        """Return the remaining amount of each accepted order after its trades."""
        return {
            order_id: row.signed.maker_amount - self.filled_by_id[order_id]
            for order_id, row in self.order_by_id.items()
        }


def order_row(placed: OrderPlaced, sequence: int) -> OrderRow:
    """Return the row of a placed order."""
    command = placed.command
    return OrderRow(
        order_id=command.order_id,
        sequence=sequence,
        condition_id=command.condition_id,
        is_yes=command.is_yes,
        owner=command.owner,
        order_type=command.order_type,
        price_ticks=command.terms.price_ticks,
        ticks_per_one=command.terms.ticks_per_one,
        size_units=placed.size_units,
        matched_units=placed.matched_units,
        status=OrderStatus.LIVE,
        close_reason=None,
        placed_at_ms=NOW_MS,
        updated_at_ms=NOW_MS,
        signed=command.order,
    )
