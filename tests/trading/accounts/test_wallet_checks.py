"""The questions that orders of contract wallets cost the chain, and the life of its answers."""

import asyncio
from collections.abc import Collection

import pytest
from tests.rigs.clock import Clock
from tests.rigs.orders.version_2 import a_deposit_wallet, a_wallet_order
from tests.rigs.trading import KnownChain, Trader, TradingRig
from tests.rigs.values import (
    EXCHANGE,
    TOKEN,
    a_buy,
    a_deployment,
    a_signed_order,
    an_address,
    an_observation,
    an_order_id,
)
from typing_extensions import override

from foretell.domain.contracts.wallet_state import BlockMark, WalletChanges, WalletState
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.order import NotWalletOwner, WalletRefuses
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.public_reads.places import client_name
from foretell.trading.accounts.wallet_checks import (
    KEPT_MS,
    KEPT_MS_MAX,
    KEPT_WITHOUT_NODE_MS_MAX,
    WalletChecks,
)

pytestmark = pytest.mark.anyio

ALICE, BOB = an_address("alice"), an_address("bob")
SAFE = a_deployment().safe_of(ALICE)
WALLET = a_deposit_wallet("alice")
ORDER_ID = Bytes32("0x" + "ab" * 32)


class SlowChain(KnownChain):
    """A chain whose answers a test can hold back."""

    def __init__(self) -> None:
        super().__init__()
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.may_watch = asyncio.Event()
        self.may_watch.set()

    @override
    async def read(self, wallet: Address) -> WalletState:
        state = await super().read(wallet)
        await self.may_read.wait()
        return state

    @override
    async def changes(self, since: BlockMark, watched: Collection[Address]) -> WalletChanges:
        found = await super().changes(since, watched)
        await self.may_watch.wait()
        return found


@pytest.fixture
def chain() -> SlowChain:
    chain = SlowChain()
    chain.contracts.update({SAFE, WALLET})
    chain.owners_by_wallet[SAFE] = (ALICE,)
    return chain


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def checks(chain: SlowChain, clock: Clock) -> WalletChecks:
    return WalletChecks(chain, clock.now_ms)


def of_safe() -> SignedOrder:
    return a_signed_order("alice", maker=SAFE, signature_type=SignatureType.SAFE)


def of_wallet() -> SignedOrder:
    return a_wallet_order("alice", WALLET)


async def place(checks: WalletChecks, order: SignedOrder) -> bool:
    """Check an order, and return whether the chain was asked."""
    pending = checks.pending(order, ORDER_ID)
    if pending is None:
        return False
    await pending
    return True


def test_an_order_of_an_address_asks_nothing(checks: WalletChecks, chain: SlowChain) -> None:
    assert checks.pending(a_buy("alice"), ORDER_ID) is None
    assert (chain.wallets_read, len(checks)) == (0, 0)


@pytest.mark.parametrize("order", [of_safe(), of_wallet()])
async def test_known_code_is_asked_once_while_no_log_shows_a_change(
    checks: WalletChecks, chain: SlowChain, clock: Clock, order: SignedOrder
) -> None:
    assert await place(checks, order)
    for _ in range(KEPT_MS_MAX // KEPT_MS - 1):
        clock.move(KEPT_MS - 1)
        chain.mine(BOB)
        await checks.watch()
        assert not await place(checks, order)
    clock.move(2 * KEPT_MS)
    await checks.watch()
    assert await place(checks, order)
    assert chain.wallets_read == 2
    assert chain.signatures_fetched == (order.maker == WALLET)


@pytest.mark.parametrize("order", [of_safe(), of_wallet()])
async def test_without_the_logs_an_answer_is_kept_for_a_minute(
    checks: WalletChecks, clock: Clock, order: SignedOrder
) -> None:
    assert await place(checks, order)
    clock.move(KEPT_MS - 1)
    assert not await place(checks, order)
    clock.move(1)
    assert await place(checks, order)


async def test_unknown_code_is_asked_every_minute_whatever_the_logs_show(
    checks: WalletChecks, chain: SlowChain, clock: Clock
) -> None:
    chain.unknown_code.add(WALLET)
    assert await place(checks, of_wallet())
    clock.move(KEPT_MS)
    await checks.watch()
    assert await place(checks, of_wallet())
    assert chain.signatures_fetched == 2


@pytest.mark.parametrize("order", [of_safe(), of_wallet()])
@pytest.mark.case("C-06")
async def test_a_log_of_a_change_drops_the_answer_at_once(
    checks: WalletChecks, chain: SlowChain, order: SignedOrder
) -> None:
    await place(checks, order)
    chain.mine(order.maker)
    await checks.watch()
    assert await place(checks, order)


async def test_an_owner_that_was_removed_is_refused(checks: WalletChecks, chain: SlowChain) -> None:
    await place(checks, of_safe())
    chain.owners_by_wallet[SAFE] = (BOB,)
    chain.mine(SAFE)
    await checks.watch()
    for _ in range(2):
        with pytest.raises(NotWalletOwner, match="does not let 0x"):
            await place(checks, of_safe())


@pytest.mark.case("C-06")
async def test_a_safe_that_is_not_deployed_is_its_owner_s(
    checks: WalletChecks, chain: SlowChain
) -> None:
    chain.contracts.clear()
    chain.owners_by_wallet.clear()
    assert await place(checks, of_safe())
    assert not await place(checks, of_safe())


async def test_a_replaced_block_drops_all_answers(checks: WalletChecks, chain: SlowChain) -> None:
    await place(checks, of_safe())
    await place(checks, of_wallet())
    chain.mine()
    chain.is_replaced = True
    await checks.watch()
    assert len(checks) == 0


async def test_an_answer_of_a_block_whose_logs_were_read_without_it_is_not_kept(
    checks: WalletChecks, chain: SlowChain
) -> None:
    """The wallet changed in a block after the one that it was read at, and the logs were read before it was kept."""
    await place(checks, of_wallet())
    chain.may_read.clear()
    placing = asyncio.create_task(place(checks, of_safe()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    chain.mine(SAFE)
    await checks.watch()
    chain.may_read.set()
    assert await placing
    assert await place(checks, of_safe())


async def test_an_answer_that_arrives_while_logs_are_read_without_it_is_not_kept(
    checks: WalletChecks, chain: SlowChain
) -> None:
    await place(checks, of_wallet())
    chain.may_read.clear()
    chain.may_watch.clear()
    placing = asyncio.create_task(place(checks, of_safe()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    chain.mine(SAFE)
    watching = asyncio.create_task(checks.watch())
    await asyncio.sleep(0)
    chain.may_read.set()
    await placing
    chain.may_watch.set()
    await watching
    assert await place(checks, of_safe())


async def test_a_chain_that_is_gone_refuses_no_wallet_of_known_code_that_it_answered_for(
    checks: WalletChecks, chain: SlowChain, clock: Clock
) -> None:
    await place(checks, of_safe())
    clock.move(KEPT_MS)
    chain.failure = ChainUnavailable("eth_call", "gone")
    assert await place(checks, of_safe())
    with pytest.raises(ChainUnavailable):
        await place(checks, of_wallet())


async def test_guard_an_answer_counts_for_a_bounded_time_while_the_node_is_unavailable(
    checks: WalletChecks, chain: SlowChain, clock: Clock
) -> None:
    await place(checks, of_safe())
    chain.failure = ChainUnavailable("eth_call", "gone")
    clock.move(KEPT_WITHOUT_NODE_MS_MAX - 1)
    assert await place(checks, of_safe())
    clock.move(1)
    with pytest.raises(ChainUnavailable):
        await place(checks, of_safe())


async def test_guard_no_answer_before_a_refusal_counts_while_the_node_is_unavailable(
    checks: WalletChecks, chain: SlowChain, clock: Clock
) -> None:
    await place(checks, of_safe())
    clock.move(KEPT_MS)
    chain.owners_by_wallet[SAFE] = (BOB,)
    with pytest.raises(NotWalletOwner):
        await place(checks, of_safe())
    chain.failure = ChainUnavailable("eth_call", "gone")
    with pytest.raises(ChainUnavailable):
        await place(checks, of_safe())


async def test_orders_of_a_wallet_at_the_same_time_share_one_reading(
    checks: WalletChecks, chain: SlowChain
) -> None:
    assert await asyncio.gather(*(place(checks, of_safe()) for _ in range(20))) == [True] * 20
    assert chain.wallets_read == 1


async def test_an_order_does_not_wait_for_the_turns_of_another_client(
    checks: WalletChecks, chain: SlowChain
) -> None:
    """One could ask for a wallet of somebody else, after so many others that the latter's orders were refused."""

    async def place_as(client: str) -> None:
        client_name.set(client)
        await place(checks, of_safe())

    await asyncio.gather(*(place_as(client) for client in ("one", "one", "another")))
    assert chain.wallets_read == 2


async def test_the_answers_are_bounded(chain: SlowChain, clock: Clock) -> None:
    checks = WalletChecks(chain, clock.now_ms, kept_max=3)
    for number in range(50):
        owner = f"person {number}"
        safe = a_deployment().safe_of(an_address(owner))
        order = a_signed_order(owner, maker=safe, signature_type=SignatureType.SAFE)
        await place(checks, order)
    assert len(checks) == 3
    await checks.watch()
    ((_, watched),) = chain.watched
    assert len(watched) == 3
    last = a_deployment().safe_of(an_address("person 49"))
    chain.mine(last)
    await checks.watch()
    assert len(checks) == 2


async def test_nothing_is_asked_for_while_nothing_is_kept(
    checks: WalletChecks, chain: SlowChain
) -> None:
    await checks.watch()
    assert chain.watched == []


@pytest.mark.case("C-05")
async def test_a_wallet_that_says_yes_and_then_no_loses_only_its_own_order(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    """The wallet's next order is refused once a log shows the change; what others placed is untouched."""
    rig.chain.contracts.add(WALLET)
    await rig.submit(
        an_observation(
            [BalanceSeen(WALLET, COLLATERAL, 1_000 * TOKEN)],
            [AllowanceSeen(WALLET, EXCHANGE, is_collateral=True, units=AMOUNT_UNITS_MAX)],
        )
    )
    checks = rig.context.wallet_checks
    resting = a_buy("bob", price_ticks=30)
    await bob.placed(resting)
    await alice.placed(a_wallet_order("alice", WALLET, price_ticks=40))
    rig.chain.saying_no.add(WALLET)
    rig.chain.unknown_code.add(WALLET)
    rig.chain.mine(WALLET)
    await checks.watch()
    refused = await alice.place(a_wallet_order("alice", WALLET, price_ticks=41, salt="2"))
    assert (refused.status_code, refused.json()["code"]) == (400, "wallet_refuses")
    await alice.placed(a_buy("alice", price_ticks=20))
    assert an_order_id(resting) in rig.host.engine.state.live_orders


async def test_the_refusal_of_a_removed_owner_says_what_to_do(
    rig: TradingRig, alice: Trader
) -> None:
    safe = rig.context.wallets.safe_of(alice.address)
    rig.chain.contracts.add(safe)
    rig.chain.owners_by_wallet[safe] = (BOB,)
    order = a_signed_order("alice", maker=safe, signature_type=SignatureType.SAFE)
    refused = await alice.place(order)
    answer = refused.json()
    assert (refused.status_code, answer["error"]) == (400, "Invalid order payload")
    assert answer["code"] == "not_wallet_owner"
    assert safe in answer["message"].lower()
    dry = await alice.send("POST", "/order/validate", alice.body(order))
    assert "key of an owner" in dry.json()["cure"]


async def test_a_wallet_without_code_accepts_nothing(
    checks: WalletChecks, chain: SlowChain
) -> None:
    chain.contracts.clear()
    with pytest.raises(WalletRefuses):
        await place(checks, of_wallet())
    assert len(checks) == 0
