"""Documents in the rows of creation requests, in the form that earlier versions stored."""

from tests.rigs.values import a_word, an_address

from foretell.domain.creation.plan import PlanItem
from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.creation.documents import (
    StoredMetadataUpdate,
    StoredRegistration,
    decode,
    decode_plan,
    encode,
    encode_plan,
)

APPROVAL = PlanItem("approve", an_address("collateral"), b"\x09\x5e", "Approve the fee")
QUESTION = PlanItem("initialize-market-1", an_address("adapter"), b"\x18", "Ask", "binary", 3)
REGISTRATION = {
    "key": "binary",
    "conditionId": a_word("condition"),
    "exchange": checksum_address(an_address("exchange")),
    "tokenA": "12",
    "tokenB": "34",
    "alreadyRegistered": False,
    "txHash": a_word("tx"),
}
UPDATE = {
    "key": "binary",
    "conditionId": a_word("condition"),
    "metadataTxId": "id",
    "metadataUri": "local://id",
    "updateTxHash": None,
}


def test_a_plan_is_stored_under_the_keys_of_earlier_versions() -> None:
    assert encode_plan([APPROVAL, QUESTION]) == [
        {
            "id": "approve",
            "to": checksum_address(an_address("collateral")),
            "value": "0",
            "data": "0x095e",
            "description": "Approve the fee",
        },
        {
            "id": "initialize-market-1",
            "to": checksum_address(an_address("adapter")),
            "value": "3",
            "data": "0x18",
            "description": "Ask",
            "marketKey": "binary",
        },
    ]


def test_a_plan_comes_back_from_its_document() -> None:
    assert decode_plan(encode_plan([APPROVAL, QUESTION])) == (APPROVAL, QUESTION)


def test_a_registration_comes_back_from_a_document_of_an_earlier_version() -> None:
    (stored,) = decode([REGISTRATION], StoredRegistration)
    assert (stored.key, stored.token_a, stored.token_b) == ("binary", "12", "34")
    assert encode([stored]) == [REGISTRATION]


def test_a_metadata_update_comes_back_from_a_document_of_an_earlier_version() -> None:
    (stored,) = decode([UPDATE], StoredMetadataUpdate)
    assert (stored.metadata_tx_id, stored.update_tx_hash) == ("id", None)
    assert encode([stored]) == [UPDATE]
