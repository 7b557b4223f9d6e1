"""Random matches: exact fees and fills, conservation to the unit, and an empty exchange."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.contracts.evm import Reverted
from tests.contracts.exchange.accounting import (
    ACTORS,
    COLLATERAL,
    V2_FEE_RATE_BPS,
    Account,
    Scene,
    scenes,
)
from tests.contracts.market import World
from tests.contracts.packed import match_packed
from tests.contracts.signing import BUY, SELL

Holdings = dict[tuple[str, int], int]
Match = Callable[..., Any]

# The two calls that settle a match.
MATCHES = st.sampled_from((World.match, match_packed))


def held(world: World) -> Holdings:
    """Return the balances of all accounts that a match may change."""
    actors = (world.taker, *world.makers[:ACTORS])
    wallets = [*(actor.address for actor in actors), world.fee_receiver, world.exchange.address]
    holdings = {
        (wallet, asset): amount
        for wallet in wallets
        for asset, amount in zip(
            (COLLATERAL, world.yes, world.no), world.holdings(wallet), strict=True
        )
    }
    locked = world.collateral.call("balanceOf", world.ctf.address)
    return holdings | {(world.ctf.address, COLLATERAL): locked}


def by_asset(holdings: Holdings) -> Counter[int]:
    """Return the sum of balances of each asset."""
    total: Counter[int] = Counter()
    for (_, asset), amount in holdings.items():
        total[asset] += amount
    return total


def match(world: World, account: Account, call: Match = World.match) -> None:
    """Match on the chain."""
    world.allow_fees(V2_FEE_RATE_BPS)
    call(world, account.taker, account.makers, account.fill)


def matched(world: World, account: Account, call: Match) -> tuple[Holdings, Holdings]:
    """Match on the chain; return all balances before and after."""
    before = held(world)
    match(world, account, call)
    return before, held(world)


@pytest.mark.parametrize("side", [BUY, SELL])
@given(data=st.data())
def test_a_match_changes_exactly_the_expected_balances(
    world: World, side: int, data: st.DataObject
) -> None:
    account = Account(world, data.draw(scenes(side)))
    assume(account.refusal is None)
    with world.evm.rolled_back():
        before, after = matched(world, account, data.draw(MATCHES))
    gained = {place: after[place] - before[place] for place in after}
    assert gained == {place: account.gains[place] for place in after}
    assert {
        after[world.exchange.address, asset] for asset in (COLLATERAL, world.yes, world.no)
    } == {0}


@pytest.mark.case("B-03")
@pytest.mark.parametrize("side", [BUY, SELL])
@given(data=st.data())
def test_a_match_conserves_collateral_and_complete_sets(
    world: World, side: int, data: st.DataObject
) -> None:
    account = Account(world, data.draw(scenes(side)))
    assume(account.refusal is None)
    with world.evm.rolled_back():
        before, after = matched(world, account, data.draw(MATCHES))
    total = Counter(by_asset(after))
    total.subtract(by_asset(before))
    assert total == {COLLATERAL: 0, world.yes: account.ledger.sets, world.no: account.ledger.sets}


@pytest.mark.parametrize("side", [BUY, SELL])
@given(data=st.data())
def test_a_match_reduces_each_order_by_exactly_its_fill(
    world: World, side: int, data: st.DataObject
) -> None:
    account = Account(world, data.draw(scenes(side)))
    assume(account.refusal is None)
    with world.evm.rolled_back():
        match(world, account, data.draw(MATCHES))
        left = [world.exchange.call("remaining", order.fields) for order in account.makers]
        taker_left = world.exchange.call("remaining", account.taker.fields)
    pairs = zip(account.makers, account.scene.makers, strict=True)
    assert left == [order.maker_amount - maker.making for order, maker in pairs]
    assert taker_left == account.taker.maker_amount - account.taker_fill


@pytest.mark.parametrize("side", [BUY, SELL])
@given(data=st.data())
def test_a_match_is_refused_exactly_when_rounding_exceeds_the_takers_limit(
    world: World, side: int, data: st.DataObject
) -> None:
    account = Account(world, data.draw(tiny_scenes(side)))
    with world.evm.rolled_back():
        assert refusal_of(world, account, data.draw(MATCHES)) == account.refusal


def refusal_of(world: World, account: Account, call: Match) -> str | None:
    try:
        match(world, account, call)
    except Reverted as refused:
        return refused.name
    return None


def tiny_scenes(side: int) -> st.SearchStrategy[Scene]:
    """Amounts of a few units, where rounding matters."""
    return scenes(side, amount_max=12)
