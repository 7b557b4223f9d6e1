from tests.rigs.values import an_address

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import (
    ONE_HALF,
    Change,
    TradePrice,
    merge,
    purchase,
    redemption,
    sale,
    split,
    transfer_in,
    transfer_out,
)
from foretell.indexer.token_movements import HoldingKey, Mover, TxMovements

YES = AssetId("1")
ANN, BOB = (an_address("ann"), YES), (an_address("bob"), YES)
PRICE = TradePrice(1, 4)
TOKENS, ADAPTER = Mover.CONDITIONAL_TOKENS, Mover.NEG_RISK_ADAPTER


def changes_of(movements: TxMovements) -> dict[HoldingKey, list[Change]]:
    return movements.changes(lambda _: PRICE)


def test_a_transfer_is_two_changes() -> None:
    movements = TxMovements()
    movements.add_transfer(ANN[0], BOB[0], YES, 8, ONE_HALF)
    assert changes_of(movements) == {ANN: [transfer_out(8)], BOB: [transfer_in(8, ONE_HALF)]}


def test_a_transfer_to_oneself_is_none() -> None:
    movements = TxMovements()
    movements.add_transfer(ANN[0], ANN[0], YES, 8, ONE_HALF)
    assert changes_of(movements) == {}


def test_an_act_explains_the_newest_fitting_move() -> None:
    movements = TxMovements()
    for units in (5, 7, 5):
        movements.add_unattributed(ANN, units, TOKENS, is_in=True)
    assert movements.explain(ANN, split(5, is_yes=True), TOKENS, is_in=True)
    assert changes_of(movements)[ANN] == [
        transfer_in(5, PRICE),
        transfer_in(7, PRICE),
        split(5, is_yes=True),
    ]


def test_an_act_explains_no_move_of_another_kind() -> None:
    movements = TxMovements()
    movements.add_unattributed(ANN, 5, TOKENS, is_in=True)
    assert not movements.explain(ANN, merge(5, is_yes=True), TOKENS, is_in=False)
    assert not movements.explain(ANN, split(6, is_yes=True), TOKENS, is_in=True)
    assert not movements.explain(BOB, split(5, is_yes=True), TOKENS, is_in=True)


def test_an_act_explains_no_move_by_another_contract() -> None:
    movements = TxMovements()
    movements.add_unattributed(ANN, 5, ADAPTER, is_in=False)
    assert movements.newest_units(ANN, TOKENS, is_in=False) == 0
    assert not movements.explain(ANN, redemption(5, 5), TOKENS, is_in=False)
    assert movements.explain(ANN, redemption(5, 5), ADAPTER, is_in=False)


def test_a_move_is_explained_once() -> None:
    movements = TxMovements()
    movements.add_unattributed(ANN, 5, TOKENS, is_in=True)
    assert movements.explain(ANN, split(5, is_yes=True), TOKENS, is_in=True)
    assert not movements.explain(ANN, split(5, is_yes=True), TOKENS, is_in=True)


def test_the_newest_move_is_the_amount_that_a_redemption_burned() -> None:
    movements = TxMovements()
    assert movements.newest_units(ANN, TOKENS, is_in=False) == 0
    movements.add_unattributed(ANN, 5, TOKENS, is_in=False)
    movements.add_unattributed(ANN, 9, TOKENS, is_in=False)
    assert movements.newest_units(ANN, TOKENS, is_in=False) == 9
    movements.explain(ANN, redemption(9, 9), TOKENS, is_in=False)
    assert movements.newest_units(ANN, TOKENS, is_in=False) == 5


def test_a_move_that_no_act_explains_is_a_transfer() -> None:
    movements = TxMovements()
    movements.add_unattributed(ANN, 8, TOKENS, is_in=True)
    movements.add_unattributed(BOB, 8, TOKENS, is_in=False)
    assert changes_of(movements) == {ANN: [transfer_in(8, PRICE)], BOB: [transfer_out(8)]}


def test_fills_explain_the_moves_of_the_exchange() -> None:
    movements = TxMovements()
    movements.add_traded(ANN, 8)
    movements.add_traded(BOB, -8)
    buy, sell = purchase(8, 4, 0), sale(8, 4, 0)
    movements.add_fill(ANN, buy, is_in=True)
    movements.add_fill(BOB, sell, is_in=False)
    assert changes_of(movements) == {ANN: [buy], BOB: [sell]}


def test_moves_of_the_exchange_beyond_its_fills_are_transfers() -> None:
    movements = TxMovements()
    movements.add_traded(ANN, 10)
    movements.add_traded(BOB, -10)
    movements.add_fill(ANN, purchase(8, 4, 0), is_in=True)
    movements.add_fill(BOB, sale(6, 4, 0), is_in=False)
    assert changes_of(movements) == {
        ANN: [purchase(8, 4, 0), transfer_in(2, PRICE)],
        BOB: [sale(6, 4, 0), transfer_out(4)],
    }
