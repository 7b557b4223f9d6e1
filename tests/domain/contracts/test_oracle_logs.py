"""Decoding of the optimistic oracle's logs."""

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from tests.rigs.values import an_address

from foretell.domain.contracts.log_decoder import decode_log
from foretell.domain.contracts.logs import AnswerDisputed, AnswerProposed, ChainLog, ContractKind
from foretell.domain.values.hexadecimal import word_of

ADAPTER, ANN, BOB = an_address("adapter"), an_address("ann"), an_address("bob")
QUERY = b"YES_OR_NO_QUERY".ljust(32, b"\0")
PROPOSE = "ProposePrice(address,address,bytes32,uint256,bytes,int256,uint256,address)"
DISPUTE = "DisputePrice(address,address,address,bytes32,uint256,bytes,int256)"


def decoded(signature: str, accounts: tuple[str, ...], data: bytes) -> ChainLog | None:
    topics = ["0x" + keccak(signature.encode()).hex()]
    topics += ["0x" + "00" * 12 + each[2:] for each in accounts]
    return decode_log(ContractKind.OPTIMISTIC_ORACLE, topics, "0x" + data.hex())


@pytest.mark.parametrize("price", [10**18, 0, -(2**255)])
@pytest.mark.parametrize("text", [b"", b"q", b"q" * 32, b"q" * 8139])
def test_proposals_and_disputes_name_the_question_by_its_text(text: bytes, price: int) -> None:
    question_id = word_of(keccak(text))
    proposed = encode(
        ["bytes32", "uint256", "bytes", "int256", "uint256", "address"],
        [QUERY, 5, text, price, 9, ANN],
    )
    disputed = encode(["bytes32", "uint256", "bytes", "int256"], [QUERY, 5, text, price])

    assert decoded(PROPOSE, (ADAPTER, ANN), proposed) == AnswerProposed(
        ADAPTER, question_id, ANN, price, 9
    )
    assert decoded(DISPUTE, (ADAPTER, ANN, BOB), disputed) == AnswerDisputed(
        ADAPTER, question_id, BOB, price
    )


def test_a_log_with_additional_bytes_is_not_decoded() -> None:
    data = encode(["bytes32", "uint256", "bytes", "int256"], [QUERY, 5, b"q", 0])

    assert decoded(DISPUTE, (ADAPTER, ANN, BOB), data + bytes(32)) is None
