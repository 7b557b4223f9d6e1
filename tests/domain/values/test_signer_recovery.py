"""Answers of the signer recovery."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.exchange import EngineBusy, EngineRestarting
from foretell.domain.errors.families import ForetellError, MalformedSignature
from foretell.domain.values.hexadecimal import address_of
from foretell.domain.values.signer_recovery import (
    ANSWER_BYTES,
    CLOSED,
    LATE,
    NO_SIGNER,
    RECOVERED,
    answer_without_signer,
    signer_of,
)


@given(st.binary(min_size=20, max_size=20))
def test_an_answer_names_the_signer(raw: bytes) -> None:
    answer = bytes([RECOVERED]) + raw
    assert len(answer) == ANSWER_BYTES
    assert signer_of(answer) == address_of(raw)


@pytest.mark.parametrize(
    ("outcome", "refusal"),
    [(NO_SIGNER, MalformedSignature), (LATE, EngineBusy), (CLOSED, EngineRestarting)],
)
def test_an_answer_without_a_signer_is_a_refusal(
    outcome: int, refusal: type[ForetellError]
) -> None:
    answer = answer_without_signer(outcome)
    assert len(answer) == ANSWER_BYTES
    with pytest.raises(refusal):
        signer_of(answer)


def test_a_signer_is_not_left_out_of_its_answer() -> None:
    with pytest.raises(AssertionError):
        answer_without_signer(RECOVERED)
