"""The example of transfers in a ledger on the data API's page: each row is what the API answers."""

import re
from pathlib import Path
from typing import Final

import pytest
from tests.rigs.read_apis import Reader
from tests.rigs.values import NOW_S, TOKEN, a_word, an_address, an_asset

from foretell.domain.portfolio.positions import (
    NO_POSITION,
    TradePrice,
    apply,
    purchase,
    transfer_in,
    transfer_out,
)
from foretell.store.database import Database
from foretell.store.index.positions import PositionRow, record_positions

pytestmark = pytest.mark.anyio

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "data-api.md"
FIGURES: Final = ("size", "initialValue", "totalBought", "totalBoughtUsdc", "realizedPnl")
CHANGES: Final = {
    "purchase": purchase(10 * TOKEN, 4 * TOKEN, 0),
    "transfer in": transfer_in(2 * TOKEN, TradePrice(70, 100)),
    "transfer out": transfer_out(3 * TOKEN),
}


async def test_the_entries_of_the_example_are_what_the_api_answers(
    database: Database, reader: Reader
) -> None:
    wallet, token, position = an_address("ann"), an_asset(is_yes=True), NO_POSITION
    async with database.writing() as tx:
        for block, change in enumerate(CHANGES.values(), 1):
            position = apply(position, change)
            figures = position.size_units, position.cost_units, position.bought_units
            gained = position.spent_units, position.realized_units, NOW_S, block
            row = PositionRow._make((wallet, token, a_word("market"), *figures, *gained))
            await record_positions(tx, [row])
    example = PAGE.read_text().partition("A transfer is neither bought nor sold")[2]
    rows = re.findall(
        r"^\| ([a-z ]+) \| ([-\d. |]+) \|$", example.partition("### ")[0], re.MULTILINE
    )
    path = f"/positions/{token}/ledger"
    ledger = await reader.get(path, user=wallet)
    first = await reader.get(path, user=wallet, limit="2")
    second = await reader.get(path, user=wallet, limit="2", after=first["next"])
    answered = [*zip(CHANGES, ledger["entries"], strict=True), ("now", ledger["now"])]
    assert second["now"] == ledger["now"]
    assert [
        (name, [entry[figure] for figure in FIGURES])
        for name, entry in [*answered, ("before", second["before"])]
    ] == [(name, [float(cell) for cell in cells.split(" | ")]) for name, cells in rows]
