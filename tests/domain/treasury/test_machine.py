"""Shards and their treasury with an unreliable network, and their invariants."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.domain.treasury.treasury_world import NAMES, PLENTY, SHARDS, WALLETS, World
from tests.rigs.digest import digest
from tests.rigs.values import an_address

from foretell.domain.exchange.ledger import COLLATERAL, Account
from foretell.domain.exchange.order import Side
from foretell.domain.treasury.treasury import free_units, look_up_allocation, recalls

shards = st.sampled_from(SHARDS)
names = st.sampled_from(NAMES)
numbers = st.integers(0, 10**6)


class TreasuryMachine(RuleBasedStateMachine):
    """The events that may happen at any time."""

    world: World

    @initialize(units=st.sampled_from([1, 7, 100]))
    def begin(self, units: int) -> None:
        self.world = World(units)

    @rule(
        shard=shards,
        who=names,
        side=st.sampled_from(Side),
        price=st.integers(1, 3),
        lots=st.integers(1, 30),
    )
    def place(self, shard: str, who: str, side: Side, price: int, lots: int) -> None:
        self.world.place(self.world.shards[shard], who, side, price, lots)

    @rule(shard=shards, who=names, price=st.integers(1, 3), lots=st.integers(1, 30))
    def place_with_patience(self, shard: str, who: str, price: int, lots: int) -> None:
        self.world.fund_and_place(self.world.shards[shard], who, price, lots)

    @rule(shard=shards, who=names, count=st.integers(1, 3))
    def cancel(self, shard: str, who: str, count: int) -> None:
        self.world.cancel(self.world.shards[shard], who, count)

    @rule(shard=shards)
    def sync_a_shard(self, shard: str) -> None:
        self.world.shards[shard].sync()

    @rule()
    def sync_the_treasury(self) -> None:
        self.world.treasury.sync()

    @rule(shard=shards)
    def kill_a_shard(self, shard: str) -> None:
        self.world.shards[shard].crash()

    @rule()
    def kill_the_treasury(self) -> None:
        self.world.treasury.crash()

    @rule()
    def keep_a_snapshot_of_the_treasury(self) -> None:
        self.world.treasury.keep_snapshot()

    @rule(number=numbers, is_kept=st.booleans())
    def deliver(self, number: int, *, is_kept: bool) -> None:
        letters = self.world.messages
        for letter in letters[number % max(1, len(letters)) :][:1]:
            self.world.messages = [each for each in letters if is_kept or each is not letter]
            self.world.deliver(letter)

    @rule(number=numbers)
    def lose(self, number: int) -> None:
        letters = self.world.messages
        del letters[number % max(1, len(letters)) :][:1]

    @rule()
    def send_totals_again(self) -> None:
        self.world.send_totals_again()

    @rule(number=numbers, count=st.integers(0, 3), who=names, deposit=st.integers(0, 20))
    def mine(self, number: int, count: int, who: str, deposit: int) -> None:
        minable = self.world.minable()
        chosen = minable[number % max(1, len(minable)) :][:count]
        self.world.mine((), ((an_address(who), deposit),))
        for trade_id in chosen:
            if self.world.can_pay(trade_id):
                self.world.mine((trade_id,), ())

    @rule(shard=shards)
    def observe(self, shard: str) -> None:
        self.world.observe(self.world.shards[shard])

    @rule(is_cut=st.booleans())
    def send_observation(self, *, is_cut: bool) -> None:
        self.world.send_observation(is_cut=is_cut)

    @rule(is_cut=st.booleans())
    def observe_everywhere(self, *, is_cut: bool) -> None:
        for shard in self.world.shards.values():
            self.world.observe(shard)
            shard.sync()
        assert self.world.send_observation(is_cut=is_cut)

    @rule(shard=shards, who=names)
    def ask_for_too_much(self, shard: str, who: str) -> None:
        self.world.ask(self.world.shards[shard], an_address(who), PLENTY)

    @rule()
    def recall_everything(self) -> None:
        self.world.recall_everything()

    @invariant()
    def an_allocation_equals_the_confirmed_units_of_the_ledger(self) -> None:
        for shard in self.world.shards.values():
            for wallet in WALLETS:
                account = shard.memory.ledger.look_up(wallet, COLLATERAL)
                assert account.confirmed_units == shard.memory.allocations.look_up(wallet).units

    @invariant()
    def no_side_is_ahead_of_the_journal_of_the_other(self) -> None:
        for name, shard in self.world.shards.items():
            for wallet in WALLETS:
                here = shard.memory.allocations.look_up(wallet)
                there = look_up_allocation(self.world.treasury.memory, name, wallet)
                assert here.given_units <= there.given_units
                assert here.returned_units >= there.returned_units

    @invariant()
    def only_wallets_with_less_than_was_granted_are_overdrawn(self) -> None:
        for wallet in WALLETS:
            treasury = self.world.treasury.memory
            assert (free_units(treasury, wallet) < 0) == (wallet in treasury.overdrawn)

    def accounts(self) -> list[Account]:
        return [
            shard.memory.ledger.look_up(wallet, COLLATERAL)
            for shard in self.world.shards.values()
            for wallet in WALLETS
        ]

    def teardown(self) -> None:  # type: ignore[explicit-override] # 3.11 has none
        """At the end all units are free, one market can use them all, and replays agree."""
        if not hasattr(self, "world"):
            return
        self.world.settle_everything()
        self.world.recall_everything()
        for wallet in WALLETS:
            assert free_units(self.world.treasury.memory, wallet) == self.world.usable_units(wallet)
        self.check_allocations()
        for who in NAMES:
            check_use_of_all(self.world, who)
        check_replay(self.world)

    def check_allocations(self) -> None:
        """Assert that no shard has units left; some may owe units."""
        assert all(account.confirmed_units <= 0 for account in self.accounts())


def check_use_of_all(world: World, who: str) -> None:
    """Assert that each market in turn can use the whole balance and no unit more."""
    units = world.usable_units(an_address(who))
    for shard in world.shards.values():
        assert units == 0 or world.fund_and_place(shard, who, 1, units)
        assert not any(world.fund_and_place(other, who, 1, 1) for other in world.shards.values())
        world.cancel(shard, who, 1)


def check_replay(world: World) -> None:
    """Assert that each journal alone restores the state of its side."""
    before = [digest(shard.memory) for shard in world.shards.values()], world.treasury.memory
    world.sync()
    for shard in world.shards.values():
        shard.crash()
    world.treasury.crash()
    assert (
        [digest(shard.memory) for shard in world.shards.values()],
        world.treasury.memory,
    ) == before


class GoodNewsMachine(TreasuryMachine):
    """Without reorgs and withdrawals every granted unit is on the chain."""

    @invariant()
    def no_unit_is_spent_twice(self) -> None:
        for wallet in WALLETS:
            assert self.world.uncovered_units(wallet) <= 0

    @invariant()
    def no_shard_spends_more_than_its_allocation_and_credits(self) -> None:
        for account in self.accounts():
            needed = account.reserved_units + account.debit_units
            assert needed <= account.confirmed_units + account.credit_units

    def check_allocations(self) -> None:  # type: ignore[explicit-override] # 3.11 has none
        """Assert that no shard has units left, and that none owes any."""
        assert all(account.confirmed_units == 0 for account in self.accounts())


class BadNewsMachine(TreasuryMachine):
    """The same with withdrawals, reorgs and failed trades.

    The chain may then have less than was spent; the other invariants stay.
    """

    @rule(depth=st.integers(1, 2))
    def reorg(self, depth: int) -> None:
        self.world.reorg(depth)

    @rule(who=names, units=st.integers(1, 120))
    def withdraw(self, who: str, units: int) -> None:
        taken = min(units, self.world.balances()[an_address(who)])
        self.world.mine((), ((an_address(who), -taken),))

    @rule(who=names, units=st.sampled_from([0, 30, PLENTY]))
    def allow(self, who: str, units: int) -> None:
        self.world.allowance_by_wallet[an_address(who)] = units

    @rule(number=numbers)
    def give_up(self, number: int) -> None:
        minable = self.world.minable()
        self.world.given_up.update(minable[number % max(1, len(minable)) :][:1])

    @rule(is_forced=st.booleans())
    def recall(self, *, is_forced: bool) -> None:
        for missing in recalls(self.world.treasury.durable):
            self.world.send_recall(missing, is_forced=is_forced)

    @invariant()
    def orders_reserve_no_more_than_is_held(self) -> None:
        for account in self.accounts():
            held = account.confirmed_units + account.credit_units - account.debit_units
            assert account.reserved_units <= max(held, 0)


TestGoodNews = GoodNewsMachine.TestCase
TestBadNews = BadNewsMachine.TestCase
