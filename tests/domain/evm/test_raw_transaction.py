import pytest
from eth_account import Account
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from eth_utils.address import to_checksum_address
from hexbytes import HexBytes
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.domain.errors.chain import MalformedTransaction
from foretell.domain.evm.raw_transaction import Fees, TxFields, create2_address, is_noop, sign_tx
from foretell.domain.evm.rlp import encode_bytes, encode_list
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address, address_of

KEY = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
SENDER = address_of_key(KEY)
TARGET = Address("0x" + "ab" * 20)

tx_fields = st.builds(
    TxFields,
    chain_id=st.integers(1, 2**32),
    account_nonce=st.integers(0, 2**32),
    fees=st.builds(Fees, st.integers(0, 10**12), st.integers(0, 10**12)),
    gas=st.integers(21000, 10**8),
    to=st.none() | st.binary(min_size=20, max_size=20).map(address_of),
    calldata=st.binary(max_size=300),
    value_wei=st.integers(0, 10**24),
)


@settings(max_examples=50)
@given(tx_fields)
def test_a_transaction_is_signed_as_an_independent_signer_signs_it(fields: TxFields) -> None:
    ours = sign_tx(fields, KEY)
    theirs = Account.sign_transaction(
        {
            "type": 2,
            "chainId": fields.chain_id,
            "nonce": fields.account_nonce,
            "gas": fields.gas,
            "maxFeePerGas": fields.fees.max_fee_wei,
            "maxPriorityFeePerGas": fields.fees.priority_fee_wei,
            "to": b"" if fields.to is None else to_checksum_address(fields.to),
            "data": fields.calldata,
            "value": fields.value_wei,
        },
        KEY,
    )
    assert ours.raw == bytes(theirs.raw_transaction)
    assert ours.tx_hash == "0x" + bytes(theirs.hash).hex()


def test_a_signed_transaction_is_read_by_an_independent_decoder() -> None:
    raw = sign_tx(TxFields(80002, 7, Fees(30, 2), 21000, TARGET, b"\x01\x02"), KEY).raw
    decoded = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
    assert (decoded["nonce"], decoded["gas"], bytes(decoded["data"])) == (7, 21000, b"\x01\x02")


@pytest.mark.parametrize(("target", "calldata"), [(SENDER, b"\x01"), (TARGET, b""), (None, b"")])
def test_a_transaction_with_a_call_is_not_a_noop(target: Address | None, calldata: bytes) -> None:
    raw = sign_tx(TxFields(1, 0, Fees(1, 1), 21000, target, calldata), KEY).raw
    assert not is_noop(raw, SENDER)


def test_an_empty_call_of_the_sender_is_a_noop() -> None:
    assert is_noop(sign_tx(TxFields(1, 0, Fees(1, 1), 21000, SENDER, b""), KEY).raw, SENDER)


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x01\xc0", b"\x02\xc0", b"\x02" + encode_list([encode_bytes(b"abc")] * 12)],
)
def test_bytes_that_are_not_such_a_transaction_are_refused(raw: bytes) -> None:
    with pytest.raises(MalformedTransaction):
        is_noop(raw, SENDER)


@pytest.mark.parametrize(
    ("deployer", "salt", "init_code_hash", "expected"),
    [
        # The examples of EIP-1014.
        (
            "0x0000000000000000000000000000000000000000",
            "00" * 32,
            "bc36789e7a1e281436464229828f817d6612f7b477d66591ff96a9e064bcc98a",
            "0x4d1a2e2bb4f88f0250f26ffff098b0b30b26bf38",
        ),
        (
            "0x00000000000000000000000000000000deadbeef",
            "00000000000000000000000000000000000000000000000000000000cafebabe",
            "d4fd4e189132273036449fc9e11198c739161b4c0116a9a2dccdfa1c492006f1",
            "0x60f3f640a8508fc6a86d45df051962668e1e8ac7",
        ),
    ],
)
def test_create2_addresses_are_those_of_its_specification(
    deployer: str, salt: str, init_code_hash: str, expected: str
) -> None:
    address = create2_address(Address(deployer), bytes.fromhex(salt), bytes.fromhex(init_code_hash))
    assert address == expected
