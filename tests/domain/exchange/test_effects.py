"""Effects of commands."""

import inspect
from typing import Any, get_args

import msgspec
import pytest

from foretell.domain.exchange import effects
from foretell.domain.exchange.apply import Cancellation
from foretell.domain.exchange.effects import Effect, LevelChange
from foretell.domain.exchange.matching import Fill
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
    }
