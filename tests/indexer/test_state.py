"""Values of a range of blocks and their net changes."""

from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import COLLATERAL_CONTRACT, EXCHANGE, a_token_pair, a_word, an_address

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import ONE_HALF, TradePrice
from foretell.domain.values.hexadecimal import ZERO_ADDRESS
from foretell.indexer.state import UNLIMITED_UNITS, IndexState, TokenOutcome, TrackedValues

ANN, BOB = an_address("ann"), an_address("bob")
YES = AssetId("1")


def test_a_value_that_was_never_set_is_the_default() -> None:
    tracked = TrackedValues(7, {"a": 1})
    assert (tracked["a"], tracked["b"]) == (1, 7)
    assert tracked.close_block() == []


def test_only_net_changes_of_a_block_are_returned() -> None:
    tracked = TrackedValues(0, {"a": 1})
    for key, value in (("a", 5), ("a", 1), ("b", 3), ("b", 4), ("c", 0)):
        tracked[key] = value
    assert tracked.close_block() == [("b", 4)]
    tracked["b"] = 0
    assert tracked.close_block() == [("b", 0)]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.booleans()), max_size=30))
def test_changes_of_blocks_add_up(history: list[tuple[str, int, bool]]) -> None:
    tracked, seen = TrackedValues[str, int](0), dict.fromkeys("abc", 0)
    for key, value, ends_block in history:
        tracked[key] = value
        seen.update(tracked.close_block() if ends_block else ())
    seen.update(tracked.close_block())
    assert seen == {key: tracked[key] for key in "abc"}


def test_a_condition_maps_its_tokens_to_outcomes() -> None:
    state, pair = IndexState(), a_token_pair()
    state.add_condition(a_word("market"), pair, COLLATERAL_CONTRACT)
    assert state.pair_by_condition == {a_word("market"): pair}
    assert state.outcome_by_token == {
        str(pair.yes): TokenOutcome(a_word("market"), is_yes=True),
        str(pair.no): TokenOutcome(a_word("market"), is_yes=False),
    }


def test_a_token_counts_at_its_last_trade_or_one_half() -> None:
    state = IndexState(price_by_token={YES: TradePrice(3, 10)})
    assert state.price(YES) == TradePrice(3, 10)
    assert state.price(AssetId("2")) == ONE_HALF


def test_a_move_debits_the_sender_and_credits_the_receiver() -> None:
    state = IndexState()
    state.move(ZERO_ADDRESS, ANN, YES, 10)
    state.move(ANN, BOB, YES, 4)
    state.move(BOB, ZERO_ADDRESS, YES, 1)
    assert (state.balances[ANN, YES], state.balances[BOB, YES]) == (6, 3)
    assert state.balances[ZERO_ADDRESS, YES] == 0


def test_amounts_stay_within_their_columns() -> None:
    state = IndexState()
    state.move(ANN, BOB, YES, 2**63 - 1)
    state.move(ZERO_ADDRESS, BOB, YES, 5)
    assert (state.balances[ANN, YES], state.balances[BOB, YES]) == (0, 2**63 - 1)
    state.lock(a_word("market"), -1)
    assert state.locked[a_word("market")] == 0


def test_spending_reduces_an_allowance_to_zero_at_most() -> None:
    state = IndexState(allowances=TrackedValues(0, {(ANN, EXCHANGE, True): 10}))
    state.spend(ANN, EXCHANGE, 4)
    assert state.allowances[ANN, EXCHANGE, True] == 6
    state.spend(ANN, EXCHANGE, 7)
    assert state.allowances[ANN, EXCHANGE, True] == 0


def test_an_unlimited_allowance_is_not_reduced() -> None:
    state = IndexState(allowances=TrackedValues(0, {(ANN, EXCHANGE, True): UNLIMITED_UNITS}))
    state.spend(ANN, EXCHANGE, 4)
    assert state.allowances.close_block() == []


def test_amounts_beyond_63_bits_are_counted_as_ignored() -> None:
    state = IndexState()
    assert state.fits(2**63 - 1, 0)
    assert not state.fits(0, 2**63)
    assert state.ignored == {"amount of more than 63 bits": 1}
