"""Orders whose wallet could not pay for their part of a trade."""

import pytest
from tests.rigs.values import a_word, an_address

from foretell.domain.exchange.failed_trades.short_orders import (
    ALLOWANCE_CAUSE,
    BALANCE_CAUSE,
    HeldFunds,
    OrderPart,
    refused_orders,
    short_orders,
)
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.settlement import PART_SHORT, PART_STAYING

YES, NO = AssetId("1"), AssetId("2")
ALICE = an_address("alice")


def a_part(name: str, gives: AssetId, units: int, gets: AssetId, got_units: int) -> OrderPart:
    return OrderPart(a_word(name), ALICE, gives, units, gets, got_units)


@pytest.mark.parametrize(
    ("funds", "cause"),
    [
        (HeldFunds(10, 10), None),
        (HeldFunds(9, 10), BALANCE_CAUSE),
        (HeldFunds(10, 9), ALLOWANCE_CAUSE),
        (HeldFunds(0, 0), BALANCE_CAUSE),
    ],
)
def test_an_order_is_short_by_what_its_wallet_holds_or_allows(
    funds: HeldFunds, cause: str | None
) -> None:
    part = a_part("buy", COLLATERAL, 10, YES, 20)
    found = short_orders("trade", [part], {part.holding: funds})
    assert [(each.order_id, each.part, each.cause) for each in found] == (
        [] if cause is None else [(part.order_id, PART_SHORT, cause)]
    )


def test_all_orders_of_a_wallet_that_cannot_pay_for_them_together_are_short() -> None:
    parts = [a_part(name, COLLATERAL, 6, YES, 10) for name in ("one", "two")]
    found = short_orders("trade", parts, {parts[0].holding: HeldFunds(11, 12)})
    assert [each.order_id for each in found] == [part.order_id for part in parts]


def test_what_the_trade_itself_brings_a_wallet_pays_for_its_other_order() -> None:
    sale, buy = a_part("sale", YES, 10, COLLATERAL, 4), a_part("buy", COLLATERAL, 6, NO, 10)
    funds = {sale.holding: HeldFunds(10, 10), buy.holding: HeldFunds(2, 6)}
    assert short_orders("trade", [sale, buy], funds) == []


def test_an_order_that_its_exchange_refuses_is_to_blame_by_itself() -> None:
    (found,) = refused_orders("trade", {a_word("order"): "InvalidSignature"})
    assert (found.part, found.cause, found.is_blamed) == (PART_STAYING, "InvalidSignature", True)
