import pytest
from tests.indexer.chain_script import ANN, BOB, CONDITION, YES
from tests.rigs.values import EXCHANGE, a_word

from foretell.domain.contracts.logs import LogPlace, OrderFilledLog
from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.positions import Payout
from foretell.indexer.row_buffer import RowBuffer, scaled_payout
from foretell.store.index.activities import ActivityKind

PLACE = LogPlace(7, a_word("block"), 1000, 3, a_word("tx"))


@pytest.mark.parametrize(
    ("numerators", "payout"),
    [
        ((1, 0), Payout(1, 0)),
        ((2**63 - 1, 1), Payout(2**63 - 1, 1)),
        ((2**255, 2**255), Payout(2**62, 2**62)),
        ((2**256 - 1, 1), Payout(2**63 - 1, 0)),
    ],
)
def test_payouts_fit_their_columns(numerators: tuple[int, int], payout: Payout) -> None:
    assert scaled_payout(numerators) == payout


def test_a_fill_whose_counterparty_is_the_exchange_is_the_takers() -> None:
    rows = RowBuffer()
    maker = OrderFilledLog(a_word("maker"), ANN, BOB, Side.SELL, YES, 10, 4, 1)
    taker = OrderFilledLog(a_word("taker"), BOB, EXCHANGE, Side.BUY, YES, 10, 4, 0)
    for log in (maker, taker):
        rows.add_fill(PLACE, log, CONDITION, EXCHANGE)
    assert [fill.is_taker for fill in rows.fills] == [False, True]
    assert [trade.is_taker for trade in rows.activities] == [False, True]
    fill, trade = rows.fills[0], rows.activities[0]
    assert fill[:3] == trade[:3] == (7, 3, 0)
    assert (fill.size_units, fill.cost_units, fill.fee_units) == (10, 4, 1)
    assert (trade.kind, trade.side, trade.timestamp_s) == (ActivityKind.TRADE, Side.SELL, 1000)


def test_an_act_on_complete_sets_has_neither_token_nor_side() -> None:
    rows = RowBuffer()
    rows.add_set_activity(PLACE, ANN, ActivityKind.MERGE, CONDITION, (10, 8))
    (act,) = rows.activities
    assert (act.token_id, act.side, act.is_taker) == (None, None, False)
    assert (act.size_units, act.cost_units, act.tx_hash) == (10, 8, a_word("tx"))
