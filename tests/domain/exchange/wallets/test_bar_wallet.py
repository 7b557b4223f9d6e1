import pytest
from tests.rigs.values import (
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_trading_state,
    an_address,
)

from foretell.domain.errors.exchange import WalletBarred
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import BarWallet
from foretell.domain.exchange.effects import BookChanged, CloseReason, OrderClosed
from foretell.domain.exchange.order import OrderStatus
from foretell.domain.exchange.snapshot import decode_state, encode_state
from foretell.domain.exchange.state import Placement

ALICE = an_address("alice")
BAR = BarWallet(NOW_MS, ALICE, is_barred=True, cause="reverts when mined")
END = BarWallet(NOW_MS, ALICE, is_barred=False, cause="")


def test_a_bar_closes_the_wallet_s_orders_and_refuses_new_ones_with_its_cause() -> None:
    state = a_trading_state("alice", "bob")
    mine = [a_placing(a_sell("alice", 60)), a_placing(a_buy("alice", 30))]
    for placing in (*mine, a_placing(a_buy("bob", 20))):
        apply(state, placing)
    outcome = apply(state, BAR)
    closed = [each for each in outcome.effects if isinstance(each, OrderClosed)]
    assert {each.order_id for each in closed} == {each.order_id for each in mine}
    assert {each.reason for each in closed} == {CloseReason.WALLET_BARRED}
    assert any(isinstance(each, BookChanged) for each in outcome.effects)
    assert len(state.live_orders) == 1
    with pytest.raises(WalletBarred, match=f"{ALICE} is barred from matching: reverts when mined"):
        apply(state, a_placing(a_buy("alice", 31)))
    result = apply(state, a_placing(a_sell("bob", 70))).result
    assert isinstance(result, Placement)
    assert result.status is OrderStatus.LIVE


def test_a_bar_that_ends_lets_the_wallet_trade_again() -> None:
    state = a_trading_state("alice")
    apply(state, BAR)
    assert apply(state, END).is_change
    result = apply(state, a_placing(a_buy("alice", 31, 5 * TOKEN))).result
    assert isinstance(result, Placement)
    assert result.status is OrderStatus.LIVE


def test_a_bar_without_orders_is_journaled_and_a_repeated_one_is_not() -> None:
    state = a_trading_state("alice")
    assert not apply(state, END).is_change
    assert apply(state, BAR).is_change
    assert not apply(state, BAR).is_change


def test_a_bar_survives_a_snapshot_and_a_state_without_one_has_the_bytes_of_before() -> None:
    state = a_trading_state("alice")
    before = encode_state(state)
    apply(state, BAR)
    restored = decode_state(encode_state(state))
    assert restored.barred_wallets == {ALICE: "reverts when mined"}
    assert encode_state(restored) == encode_state(state)
    apply(restored, END)
    assert encode_state(restored) == before
