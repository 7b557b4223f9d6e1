"""Shards, their treasury, a chain, and an unreliable network between them.

A command is lost in a crash unless it was synced, and has no consequences before the sync. Messages
wait until they are delivered: late, twice, in any order, or never.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from tests.rigs.values import (
    EXCHANGE,
    NOW_MS,
    a_signed_order,
    a_word,
    an_address,
    an_open_market,
    some_rules,
)

from foretell.domain.errors.exchange import NotEnoughFunds
from foretell.domain.exchange.allocations import AllocationTotal, total_of
from foretell.domain.exchange.apply import Outcome, apply
from foretell.domain.exchange.commands import (
    AllowanceSeen,
    BalanceSeen,
    CancelOrders,
    Command,
    JoinTreasury,
    ObserveChain,
    OpenMarket,
    PlaceOrder,
    ReturnAllocation,
    TakeAllocations,
    TradeSeen,
    decode_command,
    encode_command,
)
from foretell.domain.exchange.effects import TradeMatched
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import OrderTerms, OrderType, Side
from foretell.domain.exchange.state import State
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.treasury.commands import (
    AdmitShard,
    GrantAllocation,
    ObserveCollateral,
    SettledSeen,
    ShardSeen,
    TakeBack,
    TreasuryCommand,
    decode_treasury_command,
    encode_treasury_command,
)
from foretell.domain.treasury.snapshot import decode_treasury, encode_treasury
from foretell.domain.treasury.treasury import (
    AllocationHolder,
    GrantResult,
    Recall,
    Treasury,
    TreasuryOutcome,
    apply_to_treasury,
    totals_given_to,
)
from foretell.domain.values.hexadecimal import Address, Bytes32

PLENTY: Final = 10**9
TICKS: Final = 4
SIGNATURE: Final = bytes(64) + b"\x1b"
CONFIRMATIONS: Final = 2
NAMES: Final = ("alice", "bob")
WALLETS: Final = tuple(an_address(name) for name in NAMES)
SHARDS: Final = ("north", "south", "west")

ToShard = TakeAllocations | ReturnAllocation
ToTreasury = GrantAllocation | TakeBack | ObserveCollateral


class Shard:
    """An engine: its durable journal and state, and its state in memory."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.market: OpenMarket = an_open_market(name, rules=some_rules(TICKS, size_units_min=1))
        self.journal: list[bytes] = []
        self.waiting: list[tuple[bytes, Callable[[Outcome], None]]] = []
        self.memory, self.durable = State(), State()

    def submit(self, command: Command, then: Callable[[Outcome], None]) -> Outcome:
        """Apply the command; `then` is called once the command and all before it are durable."""
        outcome = apply(self.memory, command)
        self.waiting.append((encode_command(command) if outcome.is_change else b"", then))
        return outcome

    def sync(self) -> None:
        """Make the commands durable, and call those that wait for them."""
        waiting, self.waiting = self.waiting, []
        answers = []
        for raw, then in waiting:
            outcome = Outcome(None, [], is_change=False)
            if raw:
                self.journal.append(raw)
                outcome = apply(self.durable, decode_command(raw))
            answers.append((then, outcome))
        for then, outcome in answers:
            then(outcome)

    def crash(self) -> None:
        """Lose the memory, and start from the journal."""
        self.waiting.clear()
        self.memory = State()
        for raw in self.journal:
            apply(self.memory, decode_command(raw))


class TreasuryProcess:
    """A treasury: its durable journal and state, and its state in memory."""

    def __init__(self) -> None:
        self.journal: list[bytes] = []
        self.waiting: list[tuple[bytes, Callable[[], None]]] = []
        self.memory, self.durable = Treasury(), Treasury()
        self.snapshot, self.snapshot_sequence = encode_treasury(Treasury()), 0

    def submit(
        self, command: TreasuryCommand, then: Callable[[TreasuryOutcome], None]
    ) -> TreasuryOutcome:
        """Apply the command; `then` is called once the command and all before it are durable."""
        outcome = apply_to_treasury(self.memory, command)
        raw = encode_treasury_command(command) if outcome.is_change else b""
        self.waiting.append((raw, lambda: then(outcome)))
        return outcome

    def sync(self) -> None:
        """Make the commands durable, and call those that wait for them."""
        waiting, self.waiting = self.waiting, []
        for raw, then in waiting:
            if raw:
                self.journal.append(raw)
                apply_to_treasury(self.durable, decode_treasury_command(raw))
            then()

    def keep_snapshot(self) -> None:
        """Take a snapshot of the durable state; the next start replays only what follows."""
        self.snapshot = encode_treasury(self.durable)
        self.snapshot_sequence = len(self.journal)

    def crash(self) -> None:
        """Lose the memory, and start from the newest snapshot, which must equal a full replay."""
        self.waiting.clear()
        self.memory = replay(decode_treasury(self.snapshot), self.journal[self.snapshot_sequence :])
        assert encode_treasury(self.memory) == encode_treasury(replay(Treasury(), self.journal))


def replay(treasury: Treasury, journal: Sequence[bytes]) -> Treasury:
    """Return the treasury after these commands."""
    for raw in journal:
        apply_to_treasury(treasury, decode_treasury_command(raw))
    return treasury


class Matched(NamedTuple):
    """A trade that settlement knows, and the collateral that it moves."""

    shard: str
    moves: tuple[tuple[Address, int], ...]


class Block(NamedTuple):
    """A block: its trades, and the deposits and withdrawals of wallets."""

    hash: Bytes32
    trade_ids: tuple[str, ...]
    deposits: tuple[tuple[Address, int], ...]


class World:
    """The shards, the treasury, the chain and the network."""

    def __init__(self, units: int) -> None:
        self.at_ms = NOW_MS
        self.treasury = TreasuryProcess()
        self.shards = {name: Shard(name) for name in SHARDS}
        self.messages: list[ToShard | ToTreasury] = []
        self.trades: dict[str, Matched] = {}
        self.given_up: set[str] = set()
        self.blocks: list[Block] = []
        self.allowance_by_wallet = dict.fromkeys(WALLETS, PLENTY)
        self.orders = self.forks = self.deep_blocks = 0
        for shard in self.shards.values():
            shard.submit(shard.market, ignore)
            shard.submit(JoinTreasury(self.at_ms, shard.name), ignore)
            self.treasury.submit(AdmitShard(self.at_ms, shard.name), ignore)
        self.mine((), tuple((wallet, units) for wallet in WALLETS))
        self.observe_everywhere()

    # The chain.

    def mine(self, trade_ids: tuple[str, ...], deposits: tuple[tuple[Address, int], ...]) -> None:
        """Add a block."""
        self.blocks.append(Block(a_word(f"{self.forks}/{len(self.blocks)}"), trade_ids, deposits))
        self.deep_blocks = max(self.deep_blocks, len(self.blocks) - CONFIRMATIONS)

    def reorg(self, depth: int) -> None:
        """Remove some blocks, but not the first one or confirmed ones."""
        self.forks += 1
        del self.blocks[max(1, self.deep_blocks, len(self.blocks) - depth) :]

    def mined(self) -> dict[str, int]:
        """Return the number of the block of each trade that is on the chain."""
        return {
            trade_id: number
            for number, block in enumerate(self.blocks, 1)
            for trade_id in block.trade_ids
        }

    def minable(self) -> list[str]:
        """Return the trades that could be mined, the oldest first."""
        mined = self.mined()
        return [each for each in self.trades if each not in mined and each not in self.given_up]

    def balances(self) -> Counter[Address]:
        """Return the balances of the wallets at the head."""
        units: Counter[Address] = Counter(dict.fromkeys(WALLETS, 0))
        for block in self.blocks:
            moves = [move for each in block.trade_ids for move in self.trades[each].moves]
            for wallet, moved in (*block.deposits, *moves):
                units[wallet] += moved
        return units

    def can_pay(self, trade_id: str) -> bool:
        """Return whether the chain would accept the trade now."""
        balances = self.balances()
        return all(balances[wallet] + moved >= 0 for wallet, moved in self.trades[trade_id].moves)

    # Observations.

    def observe(self, shard: Shard) -> None:
        """Submit the head to a shard; its balances of collateral must not count there."""
        mined, tokens = self.mined(), (shard.market.token_yes, shard.market.token_no)
        seen = []
        for trade_id, unsettled in shard.memory.unsettled_trades.items():
            status = self._status(trade_id, mined.get(trade_id), unsettled.status)
            if status is not None:
                seen.append(TradeSeen(trade_id, status, f"0x{self.forks}"))
        command = ObserveChain(
            at_ms=self.at_ms,
            block_number=len(self.blocks),
            block_hash=self.blocks[-1].hash,
            balances=tuple(BalanceSeen(each, token, PLENTY) for each in WALLETS for token in tokens)
            + tuple(BalanceSeen(each, COLLATERAL, PLENTY) for each in WALLETS),
            allowances=self._allowances()
            + tuple(
                AllowanceSeen(each, EXCHANGE, is_collateral=False, units=PLENTY) for each in WALLETS
            ),
            trades=tuple(seen),
        )
        shard.submit(command, ignore)

    def _status(self, trade_id: str, block: int | None, known: TradeStatus) -> TradeStatus | None:
        if block is not None:
            is_deep = block <= len(self.blocks) - CONFIRMATIONS
            return TradeStatus.CONFIRMED if is_deep else TradeStatus.MINED
        if trade_id in self.given_up:
            return TradeStatus.FAILED
        return TradeStatus.RETRYING if known is TradeStatus.MINED else None

    def _allowances(self) -> tuple[AllowanceSeen, ...]:
        return tuple(
            AllowanceSeen(wallet, EXCHANGE, is_collateral=True, units=units)
            for wallet, units in self.allowance_by_wallet.items()
        )

    def send_observation(self, *, is_cut: bool) -> bool:
        """Send the head to the treasury, once every shard has durably observed it."""
        head = (len(self.blocks), self.blocks[-1].hash)
        states = {name: shard.durable for name, shard in self.shards.items()}
        seen = {(state.observed_block, state.observed_hash) for state in states.values()}
        if seen != {head}:
            return False
        parts = 3 if is_cut else 1
        settled = tuple(
            SettledSeen(name, wallet, total_of(held.settled_units))
            for name, state in states.items()
            for wallet, held in state.allocations.allocation_by_wallet.items()
        )
        balances = tuple(BalanceSeen(*each, units) for each, units in self._collateral())
        for part in range(1, parts + 1):
            is_first, is_last = part == 1, part == parts
            command = ObserveCollateral(
                at_ms=self.at_ms,
                number=self.treasury.durable.observations + 1,
                block_number=head[0],
                block_hash=head[1],
                shards=tuple(ShardSeen(name, *head) for name in SHARDS),
                balances=balances if is_first else (),
                allowances=self._allowances() if is_first else (),
                settled=settled if is_last else (),
                part=part,
                parts=parts,
            )
            self.messages.append(command)
        return True

    def _collateral(self) -> list[tuple[tuple[Address, Any], int]]:
        return [((wallet, COLLATERAL), units) for wallet, units in self.balances().items()]

    # The network.

    def deliver(self, message: ToShard | ToTreasury) -> None:
        """Deliver a message; its consequences are sent once it is durable."""
        match message:
            case TakeAllocations():
                self.shards[message.shard].submit(message, ignore)
            case ReturnAllocation():
                shard = self.shards[message.shard]
                shard.submit(message, lambda _: self._send_returned(shard, message.wallet))
            case TakeBack() | ObserveCollateral():
                self.treasury.submit(message, ignore)
            case GrantAllocation():
                name = message.shard
                self.treasury.submit(message, lambda outcome: self._answer(name, outcome.result))

    def _send_returned(self, shard: Shard, wallet: Address) -> None:
        total = total_of(shard.durable.allocations.look_up(wallet).returned_units)
        self.messages.append(TakeBack(self.at_ms, shard.name, (AllocationTotal(wallet, total),)))

    def _answer(self, shard: str, granting: GrantResult | None) -> None:
        assert granting is not None
        self.messages.append(TakeAllocations(self.at_ms, shard, (granting.given,)))
        if granting.missing is not None:
            self.send_recall(granting.missing, is_forced=False)

    def send_recall(self, recall: Recall, *, is_forced: bool) -> None:
        """Ask every holder for the missing units."""
        for holder in recall.holders:
            target = total_of(holder.returned_units + min(recall.units, holder.units))
            self.messages.append(
                ReturnAllocation(
                    self.at_ms, holder.shard, recall.wallet, target, is_forced=is_forced
                )
            )

    def send_totals_again(self) -> None:
        """Send all durable totals of both sides, which include what any lost message said."""
        for name, shard in self.shards.items():
            self.messages.append(
                TakeAllocations(
                    self.at_ms, name, tuple(totals_given_to(self.treasury.durable, name))
                )
            )
            returned = tuple(
                AllocationTotal(wallet, total_of(held.returned_units))
                for wallet, held in shard.durable.allocations.allocation_by_wallet.items()
            )
            self.messages.append(TakeBack(self.at_ms, name, returned))

    def ask(self, shard: Shard, wallet: Address, missing_units: int) -> None:
        """Ask the treasury for the units that an order lacks."""
        given = shard.memory.allocations.look_up(wallet).given_units
        self.messages.append(
            GrantAllocation(self.at_ms, shard.name, wallet, total_of(given + missing_units))
        )

    # Traders.

    def place(self, shard: Shard, who: str, side: Side, price: int, lots: int) -> bool:
        """Place an order, or ask the treasury for the units that it lacks."""
        command = self._placing(shard, who, side, price, lots * TICKS)
        try:
            shard.submit(command, self._record_trades(shard.name))
        except NotEnoughFunds:
            need = lots * price
            missing = shard.memory.ledger.missing_units(an_address(who), EXCHANGE, COLLATERAL, need)
            if side is Side.BUY and missing:
                self.ask(shard, an_address(who), missing)
            return False
        return True

    def cancel(self, shard: Shard, who: str, count: int) -> None:
        """Cancel some of a wallet's orders, the oldest first."""
        orders = shard.memory.live_orders.values()
        mine = [order.order_id for order in orders if order.maker == an_address(who)]
        shard.submit(CancelOrders(self.at_ms, an_address(who), tuple(mine[:count])), ignore)

    def _record_trades(self, name: str) -> Callable[[Outcome], None]:
        def on_committed(outcome: Outcome) -> None:
            for effect in outcome.effects:
                if isinstance(effect, TradeMatched):
                    trade_id = effect.trade.trade_id
                    moves = self.shards[name].durable.unsettled_trades[trade_id].moves
                    self.trades[trade_id] = Matched(
                        name,
                        tuple(
                            (wallet, units) for wallet, asset, units in moves if asset == COLLATERAL
                        ),
                    )

        return on_committed

    def _placing(
        self, shard: Shard, who: str, side: Side, price: int, size_units: int
    ) -> PlaceOrder:
        self.orders += 1
        cost, is_buy = size_units * price // TICKS, side is Side.BUY
        order = a_signed_order(
            who,
            salt=str(self.orders),
            token_id=shard.market.token_yes,
            side=side,
            maker_amount=cost if is_buy else size_units,
            taker_amount=size_units if is_buy else cost,
            signature=SIGNATURE,
        )
        return PlaceOrder(
            at_ms=self.at_ms,
            order_id=a_word(f"order {self.orders}"),
            order=order,
            order_type=OrderType.GTC,
            is_post_only=False,
            owner=who,
            condition_id=shard.market.condition_id,
            is_yes=True,
            terms=OrderTerms(price, TICKS, size_units, None),
        )

    # The end.

    def sync(self) -> None:
        """Make all commands durable."""
        self.treasury.sync()
        for shard in self.shards.values():
            shard.sync()

    def deliver_all(self) -> None:
        """Deliver messages, and those that they cause, until none is left."""
        while self.messages:
            messages, self.messages = self.messages, []
            for message in messages:
                self.deliver(message)
            self.sync()

    def observe_everywhere(self) -> None:
        """Let all shards and the treasury observe the head, and deliver all messages."""
        for shard in self.shards.values():
            self.observe(shard)
        self.sync()
        assert self.send_observation(is_cut=False)
        self.deliver_all()

    def settle_everything(self) -> None:
        """Close all orders, mine the trades that the chain accepts, and give up the others."""
        for shard in self.shards.values():
            for who in NAMES:
                self.cancel(shard, who, len(shard.memory.live_orders))
        self.sync()
        while payable := [each for each in self.minable() if self.can_pay(each)][:1]:
            self.mine(tuple(payable), ())
        self.given_up.update(self.minable())
        for _ in range(CONFIRMATIONS):
            self.mine((), ())
        self.messages.clear()
        self.send_totals_again()
        self.deliver_all()
        self.observe_everywhere()

    def fund_and_place(self, shard: Shard, who: str, price: int, lots: int) -> bool:
        """Place an order with the units that the treasury grants for it; try three times."""
        for _ in range(3):
            if self.place(shard, who, Side.BUY, price, lots):
                self.sync()
                return True
            self.deliver_all()
        return False

    def recall_everything(self) -> None:
        """Ask every shard for all that the treasury has granted it."""
        for wallet, allocations in self.treasury.durable.allocations_by_wallet.items():
            holders = [
                AllocationHolder(name, held.units, held.returned_units)
                for name, held in allocations.items()
            ]
            self.send_recall(Recall(wallet, PLENTY, tuple(holders)), is_forced=False)
        self.deliver_all()

    def usable_units(self, wallet: Address) -> int:
        """Return what the wallet holds on the chain and allows the exchange to move."""
        return min(self.balances()[wallet], self.allowance_by_wallet[wallet])

    def uncovered_units(self, wallet: Address) -> int:
        """Return the need of orders and trades minus the balance on the chain.

        The moves of a trade count until it is on the chain.
        """
        mined, needed = self.mined(), -self.balances()[wallet]
        for shard in self.shards.values():
            needed += shard.memory.ledger.look_up(wallet, COLLATERAL).reserved_units
            for trade_id, unsettled in shard.memory.unsettled_trades.items():
                moves = () if trade_id in mined else unsettled.moves
                needed -= sum(
                    units for mover, asset, units in moves if (mover, asset) == (wallet, COLLATERAL)
                )
        return needed


def ignore(outcome: object) -> None:
    """Do nothing with an outcome."""
