"""Calls of the optimistic oracle, compared with an independent encoder."""

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from tests.rigs.values import an_address

from foretell.domain.contracts.oracle import PriceRequest

ADAPTER = an_address("adapter")
REQUEST = PriceRequest(ADAPTER, 1_700_000_000, b"q: title: Rain?")
QUERY = b"YES_OR_NO_QUERY".ljust(32, b"\0")
KEY_TYPES = ["address", "bytes32", "uint256", "bytes"]
KEY = [ADAPTER, QUERY, 1_700_000_000, b"q: title: Rain?"]


@pytest.mark.parametrize("price", [10**18, 0, 5 * 10**17, -(2**255)])
def test_a_proposal_names_the_request_and_the_price(price: int) -> None:
    assert REQUEST.propose(price) == keccak(b"proposePrice(address,bytes32,uint256,bytes,int256)")[
        :4
    ] + encode([*KEY_TYPES, "int256"], [*KEY, price])


def test_a_dispute_and_a_settlement_name_the_request() -> None:
    key = encode(KEY_TYPES, KEY)

    assert REQUEST.dispute() == keccak(b"disputePrice(address,bytes32,uint256,bytes)")[:4] + key
    assert REQUEST.settle() == keccak(b"settle(address,bytes32,uint256,bytes)")[:4] + key
