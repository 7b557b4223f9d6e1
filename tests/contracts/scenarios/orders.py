"""Orders of the scenarios: who signs them, how, and what ends them."""

from typing import Final, NamedTuple

from tests.contracts.scenarios.expected import COLLATERAL, ExpectedOrder
from tests.contracts.scenarios.order_hashes import order_digest, signed_order, wallet_signed_order
from tests.contracts.scenarios.rig import TradedPair
from tests.contracts.scenarios.scenario import Scenario, Step
from tests.contracts.signing import (
    BUY,
    EOA,
    ERC1271,
    FOREIGN_V1,
    FOREIGN_V2,
    OWN_V1,
    OWN_V2,
    SAFE,
    SELL,
    Order,
)

V1_PROFILES: Final = (OWN_V1, FOREIGN_V1)
V2_PROFILES: Final = (OWN_V2, FOREIGN_V2)
# One order of so many may be for more than its account holds.
UNPAID_EVERY: Final = 8
# One order of so many of a contract wallet is signed by another key, or is not approved.
FORGED_EVERY: Final = 4
# One order of so many of a wallet that judges signatures comes without one.
UNSIGNED_EVERY: Final = 3
# Another account than the maker makes one call of so many.
STRANGER_EVERY: Final = 8


class Wanted(NamedTuple):
    """An order to sign: whose it is, for what, and which of the profiles and rates it has."""

    who: str
    side: int
    token: int
    cost: int
    size: int
    choice: int


def place(scenario: Scenario, step: Step) -> None:
    """Sign an order of any kind, and keep it for the operator."""
    rest(scenario, scenario.tradable(step.first), step)


def rest(scenario: Scenario, traded: TradedPair, step: Step) -> tuple[Order, ExpectedOrder]:
    """Sign an order of any account, which can usually pay for it."""
    who = scenario.account(step.actor)
    side = BUY if step.second & 2 else SELL
    token = traded.pair[step.second >> 2 & 1]
    size = 1 + step.amount % (10 if step.second & 8 else 3_000)
    if step.third % UNPAID_EVERY:
        size = payable(scenario, who, COLLATERAL if side == BUY else token, size)
    cost = max(1, size * (35 + step.third % 31) // 100)
    return sign(scenario, traded, Wanted(who, side, token, cost, size, step.second))


def payable(scenario: Scenario, who: str, asset: int, size: int) -> int:
    """Return the part of a size that an account holds; one, if it holds nothing."""
    return max(1, min(size, scenario.expected.units[who, asset]))


def sign(scenario: Scenario, traded: TradedPair, wanted: Wanted) -> tuple[Order, ExpectedOrder]:
    """Sign an order, and keep it."""
    who, side, token, cost, size, choice = wanted
    is_wallet, owner = who in scenario.rig.wallets, scenario.rig.safes.get(who)
    profiles = V2_PROFILES if is_wallet or choice & 1 else V1_PROFILES
    profile = profiles[choice >> 4 & 1]
    is_v1 = profile in V1_PROFILES
    rate = (0, 100, 1_000)[choice % 3] if is_v1 else 0
    scenario.salt += 1
    nonce = scenario.nonces[traded.exchange.address, address_key(who)] if is_v1 else 0
    timestamp = 0 if is_v1 else scenario.salt
    resting = ExpectedOrder(who, side, token, cost, size, profile, rate, 0, nonce, timestamp)
    resting.remaining = resting.making
    order = Order(
        maker=who,
        signer=who if owner is None else owner.address,
        timestamp=timestamp,
        token_id=token,
        maker_amount=resting.making,
        taker_amount=resting.taking,
        side=side,
        salt=scenario.salt,
        nonce=nonce,
        fee_rate_bps=rate,
        profile=profile,
        signature_type=ERC1271 if is_wallet else EOA if owner is None else SAFE,
    )
    order = signed(scenario, traded, order, resting, choice)
    scenario.orders.setdefault(book_of(traded), []).append((order, resting))
    return order, resting


def signed(
    scenario: Scenario, traded: TradedPair, order: Order, resting: ExpectedOrder, choice: int
) -> Order:
    """Return the order signed, or approved by a call of its maker; at some steps by the wrong account."""
    exchange, signers = traded.exchange, scenario.rig.signers
    resting.is_forged = order.maker == signers.owned and choice % FORGED_EVERY == 1
    resting.is_unsigned = order.maker == signers.silent or (
        order.maker in signers.wallets and choice % UNSIGNED_EVERY == 2
    )
    if resting.is_unsigned:
        if choice % FORGED_EVERY:
            assert scenario.attempt(order.maker, exchange, "preapproveOrder", order.fields)
            resting.is_approved = True
        return order
    if order.maker == signers.owned:
        stranger = scenario.rig.traders[0]
        return wallet_signed_order(
            order, exchange, stranger if resting.is_forged else signers.owner
        )
    return signed_order(order, exchange, scenario.rig.keys.get(order.maker))


def approve(scenario: Scenario, step: Step) -> None:
    """Approve an order without a signature, or take the approval back; nobody but its maker may."""
    traded = scenario.traded(step.first)
    orders = [each for each in scenario.orders.get(book_of(traded), []) if each[1].is_unsigned]
    if not orders:
        return
    order, resting = orders[-1 - step.second % len(orders)]
    is_maker = step.third % STRANGER_EVERY > 0
    who = resting.who if is_maker else scenario.trader(step.actor)
    if step.amount % 2:
        is_done = scenario.attempt(who, traded.exchange, "preapproveOrder", order.fields)
        assert is_done == is_maker
    else:
        digest = order_digest(order, traded.exchange)
        is_done = scenario.attempt(who, traded.exchange, "invalidatePreapprovedOrder", digest)
        assert is_done == (is_maker and resting.is_approved)
    resting.is_approved = step.amount % 2 == 1 if is_done else resting.is_approved
    scenario.done["approved" if step.amount % 2 else "approval taken back"] += is_done


def is_signed(scenario: Scenario, order: ExpectedOrder) -> bool:
    """Return whether the exchange now takes the order as its maker's."""
    signers = scenario.rig.signers
    if order.is_unsigned and order.is_approved:
        return True
    if order.who == signers.wavering:
        return scenario.rig.evm.now() % 2 == 0
    return not order.is_unsigned and not order.is_forged


def counterpart(scenario: Scenario, taker: ExpectedOrder, step: Step) -> Wanted:
    """Return an order of an honest account that takes all of another order at its price."""
    side = 1 - taker.side
    asset, amount = (COLLATERAL, taker.cost) if side == BUY else (taker.token, taker.size)
    able = [who for who in scenario.honest if scenario.expected.units[who, asset] >= amount]
    if not able or step.third % UNPAID_EVERY == 0:
        able = scenario.honest
    who = able[step.second % len(able)]
    return Wanted(who, side, taker.token, taker.cost, taker.size, step.third)


def address_key(who: str) -> int:
    return int(who, 16)


def book_of(traded: TradedPair) -> tuple[str, str]:
    return traded.exchange.address, traded.condition.hex()


def is_open(order: ExpectedOrder) -> bool:
    return order.remaining > 0 and not order.is_cancelled


def nonce_of(scenario: Scenario, traded: TradedPair, order: ExpectedOrder) -> int:
    return scenario.nonces[traded.exchange.address, address_key(order.who)]


def is_stopped(scenario: Scenario, traded: TradedPair, order: ExpectedOrder) -> bool:
    """Return whether the maker has ended the order by its nonce, by a time or by its Safe's switch."""
    exchange = traded.exchange.address
    if (exchange, order.who) in scenario.silenced:
        return True
    if order.is_v1:
        return order.nonce != nonce_of(scenario, traded, order)
    return order.timestamp < scenario.ended_before[exchange, address_key(order.who)]
