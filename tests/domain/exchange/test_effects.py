"""Effects of commands."""

import inspect
from typing import Any, get_args

import msgspec
import pytest
from tests.rigs.values import a_word

from foretell.domain.exchange import effects
from foretell.domain.exchange.apply import Cancellation
from foretell.domain.exchange.effects import Effect, LevelChange, OrderFilled, TickChanged
from foretell.domain.exchange.matching import Fill
from foretell.domain.exchange.order import OrderStatus
from foretell.domain.exchange.state import Placement
from foretell.domain.exchange.trade import Trade

KINDS: list[Any] = list(get_args(Effect))


def test_the_union_has_every_effect_of_the_module() -> None:
    structs = {
        value
        for _, value in inspect.getmembers(effects, inspect.isclass)
        if issubclass(value, msgspec.Struct) and value.__module__ == effects.__name__
    }
    assert structs == {*KINDS, LevelChange}


@pytest.mark.parametrize(
    "kind", [*KINDS, Trade, Fill, Placement, Cancellation], ids=lambda kind: kind.__name__
)
def test_an_effect_is_immutable(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.frozen


def test_no_order_leaves_the_book_without_a_reason() -> None:
    words = {reason.value for reason in effects.CloseReason}
    assert words == {
        "filled",
        "dust",
        "canceled",
        "killed",
        "expired",
        "self_trade",
        "market_resolved",
        "underfunded",
        "canceled_on_chain",
        "nonce_raised",
        "reverts_on_chain",
        "wallet_barred",
        "settlement_behind",
    }


def test_a_change_of_the_tick_has_the_factor_between_the_ticks() -> None:
    assert TickChanged(a_word("market"), 100, 1_000, at_ms=0).factor == 10


@pytest.mark.parametrize(
    ("status", "reason"),
    [(OrderStatus.LIVE, None), (OrderStatus.MATCHED, effects.CloseReason.FILLED)],
)
def test_only_the_last_fill_of_an_order_closes_it(
    status: OrderStatus, reason: effects.CloseReason | None
) -> None:
    filled = OrderFilled(
        order_id=a_word("order"),
        condition_id=a_word("market"),
        owner="owner",
        size_units=2,
        remaining_units=0,
        status=status,
        at_ms=0,
        trade_id="trade",
    )
    assert filled.close_reason is reason
