from typing import Any

import pytest

from foretell.chain.rpc_types import (
    bytes_of,
    chain_tx_of,
    header_of,
    quantity_of,
    receipt_of,
)
from foretell.domain.errors.chain import ChainUnavailable

WORD = "0x" + "AB" * 32
ACCOUNT = "0x" + "CD" * 20

LOG = {
    "address": ACCOUNT,
    "topics": [WORD],
    "data": "0x",
    "blockNumber": "0x5",
    "blockHash": WORD,
    "transactionHash": WORD,
    "logIndex": "0x0",
    "somethingElse": 1,
}
RECEIPT = {
    "transactionHash": WORD,
    "blockNumber": "0x5",
    "blockHash": WORD,
    "status": "0x1",
    "gasUsed": "0x5208",
    "logs": [LOG],
}
BLOCK = {
    "number": "0x5",
    "hash": WORD,
    "parentHash": WORD,
    "timestamp": "0x64",
    "logsBloom": "0x" + "00" * 256,
}
TX = {
    "hash": WORD,
    "from": ACCOUNT,
    "to": None,
    "input": "0x0102",
    "value": "0x1",
    "nonce": "0x2",
    "blockNumber": None,
}


def test_answers_are_read_as_lower_case_hex_and_integers() -> None:
    receipt = receipt_of(RECEIPT)
    assert receipt is not None
    assert (receipt.tx_hash, receipt.block_number, receipt.gas_used) == (WORD.lower(), 5, 21000)
    assert receipt.is_success
    failed = receipt_of(RECEIPT | {"status": "0x0"})
    assert failed is not None
    assert not failed.is_success
    header = header_of(BLOCK)
    assert header is not None
    assert (header.block_hash, header.timestamp_s, header.base_fee_wei) == (WORD.lower(), 100, 0)
    tx = chain_tx_of(TX)
    assert tx is not None
    assert (tx.sender, tx.target, tx.calldata, tx.block_number) == (
        ACCOUNT.lower(),
        None,
        b"\x01\x02",
        None,
    )
    mined = chain_tx_of(TX | {"to": ACCOUNT, "blockNumber": "0x9"})
    assert mined is not None
    assert (mined.target, mined.block_number) == (ACCOUNT.lower(), 9)


def test_an_absent_answer_is_none() -> None:
    assert receipt_of(None) is None
    assert header_of(None) is None
    assert chain_tx_of(None) is None


@pytest.mark.parametrize(
    ("read", "answer"),
    [
        (receipt_of, 5),
        (receipt_of, {}),
        (receipt_of, RECEIPT | {"status": "yes"}),
        (receipt_of, RECEIPT | {"blockHash": "0x12"}),
        (receipt_of, RECEIPT | {"logs": [{}]}),
        (header_of, BLOCK | {"number": "five"}),
        (header_of, BLOCK | {"hash": None}),
        (header_of, BLOCK | {"logsBloom": "0x" + "00" * 257}),
        (chain_tx_of, TX | {"from": "0x"}),
        (chain_tx_of, TX | {"value": "1 ether"}),
        (chain_tx_of, "0x"),
    ],
)
def test_an_answer_of_another_shape_counts_as_no_answer(read: Any, answer: Any) -> None:
    with pytest.raises(ChainUnavailable):
        read(answer)


def test_quantities_and_bytes_are_read_or_refused() -> None:
    assert quantity_of("0x10", "eth_blockNumber") == 16
    assert bytes_of("0x0A", "eth_call") == b"\n"
    with pytest.raises(ChainUnavailable, match="eth_blockNumber"):
        quantity_of(None, "eth_blockNumber")
    with pytest.raises(ChainUnavailable, match="eth_blockNumber"):
        quantity_of("many", "eth_blockNumber")
    with pytest.raises(ChainUnavailable, match="eth_call"):
        bytes_of("0x0", "eth_call")
