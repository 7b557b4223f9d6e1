"""The examples of the indexer's page: each row of the table and each number is what the rules give."""

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Final

from foretell.domain.portfolio.positions import (
    NO_POSITION,
    Change,
    TradePrice,
    apply,
    conversion,
    merge,
    purchase,
    redemption,
    sale,
    split,
    transfer_in,
    transfer_out,
)

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "indexer.md"
UNITS: Final = 10**6
CHANGES: Final[dict[str, Callable[[int, int], Change]]] = {
    "buy": lambda tokens, cash: purchase(tokens, cash, 0),
    "split": lambda tokens, _: split(tokens, is_yes=True),
    "sell": lambda tokens, cash: sale(tokens, cash, 0),
    "merge": lambda tokens, _: merge(tokens, is_yes=True),
    "transfer out": lambda tokens, _: transfer_out(tokens),
    "transfer in": lambda tokens, _: transfer_in(tokens, TradePrice(70, 100)),
    "redeem": redemption,
}


def units(text: str) -> int:
    return int(Decimal(text) * UNITS)


def test_the_example_of_a_position_is_what_the_rules_give() -> None:
    text = PAGE.read_text().partition("For example, one position of Yes")[2].partition("## ")[0]
    rows = re.findall(r"^\| ([a-z ]+) \| (.+) \|$", text, re.MULTILINE)[1:]
    assert [name for name, _ in rows] == list(CHANGES)
    position = NO_POSITION
    for name, cells in rows:
        tokens, cash, *figures = map(units, cells.split(" | "))
        position = apply(position, CHANGES[name](tokens, cash))
        assert [position.size_units, position.cost_units, position.realized_units] == figures


def test_the_example_of_a_conversion_is_what_the_rules_give() -> None:
    text = PAGE.read_text().partition("For example, 10 No of two")[2].partition("\n- ")[0]
    cost_of_yes, *parts = map(units, re.findall(r"\d\.\d{6}", text))
    changes = conversion(10 * UNITS, 2, 1)
    assert [each.money_units for each in changes.received] == [cost_of_yes]
    assert [each.money_units for each in changes.given] == parts
