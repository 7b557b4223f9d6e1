"""Traces of failed transactions, as nodes' callTracer gives them."""

from typing import Any

import pytest
from tests.rigs.values import an_address

from foretell.domain.values.call_trace import FRAMES_MAX, FailedCall, failed_calls

EXCHANGE, TOKENS, WALLET, OTHER = map(an_address, ("exchange", "tokens", "wallet", "other"))


def a_frame(target: str, *calls: Any, error: str | None = "execution reverted") -> dict[str, Any]:
    frame: dict[str, Any] = {
        "type": "CALL",
        "to": target.upper().replace("0X", "0x"),
        "gas": "0xff",
    }
    return frame | ({"error": error} if error else {}) | ({"calls": list(calls)} if calls else {})


def test_the_path_goes_from_the_outermost_call_to_the_one_that_failed_first() -> None:
    trace = a_frame(EXCHANGE, a_frame(OTHER, error=None), a_frame(TOKENS, a_frame(WALLET)))
    assert failed_calls(trace) == [FailedCall(each, 255) for each in (EXCHANGE, TOKENS, WALLET)]


def test_a_failure_that_was_handled_is_not_on_the_path() -> None:
    trace = a_frame(EXCHANGE, a_frame(WALLET), a_frame(OTHER, error=None))
    assert failed_calls(trace) == [FailedCall(EXCHANGE, 255)]


def test_a_transaction_that_succeeded_has_no_failed_calls() -> None:
    assert failed_calls(a_frame(EXCHANGE, a_frame(WALLET), error=None)) == []


@pytest.mark.parametrize("trace", [None, [], "0x", {}, {"error": ""}])
def test_a_malformed_trace_says_nothing(trace: object) -> None:
    assert failed_calls(trace) == []


def test_malformed_fields_say_nothing() -> None:
    trace = {"error": "x", "to": None, "gas": "much", "calls": "none"}
    (call,) = failed_calls(trace)
    assert call.gas == 0


def test_a_path_is_bounded() -> None:
    trace: dict[str, Any] = a_frame(WALLET)
    for _ in range(FRAMES_MAX + 10):
        trace = a_frame(OTHER, trace)
    assert len(failed_calls(trace)) == FRAMES_MAX


@pytest.mark.parametrize("selector", ["23b872dd", "f242432a", "2eb2c2d6"])
def test_a_transfer_names_whose_assets_it_would_have_moved(selector: str) -> None:
    words = WALLET[2:].rjust(64, "0") + OTHER[2:].rjust(64, "0")
    frame = a_frame(TOKENS) | {"input": f"0x{selector}{words}"}
    assert failed_calls(frame) == [FailedCall(TOKENS, 255, WALLET)]


@pytest.mark.parametrize("calldata", ["0x", "0x23b872dd", "0xa9059cbb" + "00" * 64, None])
def test_another_call_names_nobody(calldata: object) -> None:
    (call,) = failed_calls(a_frame(TOKENS) | {"input": calldata})
    assert call.payer is None
