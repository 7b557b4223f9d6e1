"""EIP-712 typed data, as any wallet signs it: hashed here, or sent to a signer elsewhere.

One description serves both: `digest` is what a key signs, and `json_object` is what
`eth_signTypedData_v4` takes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from foretell.domain.contracts.deposit_wallet import WalletBatch
from foretell.domain.contracts.safe import OPERATION_CALL
from foretell.domain.creation.request import (
    CHALLENGE_FIELDS,
    CHALLENGE_NAME,
    CHALLENGE_TYPE,
    CHALLENGE_VERSION,
    Challenge,
)
from foretell.domain.exchange.signing.structs import ORDER_V1_TYPE, ORDER_V2_TYPE
from foretell.domain.exchange.signing.wallet_signatures import (
    WALLET_DOMAIN_NAME,
    WALLET_DOMAIN_VERSION,
)
from foretell.domain.values.credentials import L1_MESSAGE
from foretell.domain.values.eip712 import (
    Eip712Domain,
    address_word,
    text_word,
    typed_digest,
    uint_word,
)
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    ZERO_BYTES32,
    Address,
    checksum_address,
    keccak256,
    parse_address,
    parse_bytes32,
    word_bytes,
)

_ORDER_TYPES: Final = {1: ORDER_V1_TYPE, 2: ORDER_V2_TYPE}
_WALLET_ORDER_FIELDS: Final = "Order contents,string name,string version,uint256 chainId,address verifyingContract,bytes32 salt"
_SAFE_TX_FIELDS: Final = (
    "address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,"
    "uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce"
)
_DOMAIN_FIELDS: Final = (
    ("name", "string"),
    ("version", "string"),
    ("chainId", "uint256"),
    ("verifyingContract", "address"),
)

Value = str | int | bytes | Mapping[str, "Value"] | Sequence[Mapping[str, "Value"]]
"""A value of a field: text, addresses and words as text, numbers as integers, bytes as bytes.

An inner struct is a mapping of its fields; an array is one of inner structs.
"""
Message = Mapping[str, Value]


class TypedField(NamedTuple):
    """A field of a struct."""

    kind: str
    name: str


class InnerStruct(NamedTuple):
    """A struct inside of another one, by its name or in an array."""

    name: str
    fields: Sequence[TypedField]


@dataclass(frozen=True, slots=True)
class TypedData:
    """A struct, the domain that it is signed for, and the one struct that may be inside of it."""

    domain: Eip712Domain
    primary_type: str
    fields: Sequence[TypedField]
    message: Message
    inner: InnerStruct | None = None

    def digest(self) -> bytes:
        """Return the 32 bytes that are signed."""
        return typed_digest(self.domain.separator(), self.struct_hash())

    def struct_hash(self) -> bytes:
        """Return the hash of the struct, without its domain."""
        written = _written(self.primary_type, self.fields)
        if self.inner is not None:
            written += _written(*self.inner)
        return self._hashed(written, self.fields, self.message)

    def _hashed(self, written: str, fields: Sequence[TypedField], message: Message) -> bytes:
        words = [self._word(field.kind, message[field.name]) for field in fields]
        return keccak256(b"".join([text_word(written), *words]))

    def _word(self, kind: str, value: Value) -> bytes:
        """Return the word of a value; that of an inner struct is its hash, that of an array its words' hash."""
        if isinstance(value, Mapping):
            assert self.inner is not None
            return self._hashed(_written(*self.inner), self.inner.fields, value)
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return keccak256(b"".join(self._word(kind, each) for each in value))
        return _word(kind, value)

    def json_object(self) -> dict[str, object]:
        """Return the object that `eth_signTypedData_v4` takes."""
        given = {
            "name": self.domain.name,
            "version": self.domain.version,
            "chainId": self.domain.chain_id,
            "verifyingContract": self.domain.verifying_contract,
        }
        used = [(name, kind) for name, kind in _DOMAIN_FIELDS if given[name] is not None]
        return {
            "domain": {name: given[name] for name, _ in used},
            "types": {
                "EIP712Domain": [{"name": name, "type": kind} for name, kind in used],
                self.primary_type: _json_fields(self.fields),
                **(
                    {} if self.inner is None else {self.inner.name: _json_fields(self.inner.fields)}
                ),
            },
            "primaryType": self.primary_type,
            "message": {field.name: _json(self.message[field.name]) for field in self.fields},
        }


def _written(name: str, fields: Sequence[TypedField]) -> str:
    """Return the type of a struct as it is hashed."""
    return f"{name}({','.join(f'{field.kind} {field.name}' for field in fields)})"


def _json_fields(fields: Sequence[TypedField]) -> list[dict[str, str]]:
    return [{"name": field.name, "type": field.kind} for field in fields]


def _word(kind: str, value: str | int | bytes) -> bytes:
    """Return the word of a value of one of the types that are signed here."""
    match value:
        case bytes():
            return keccak256(value)
        case int():
            return uint_word(value)
        case _:
            pass
    if kind == "address":
        return address_word(parse_address(value))
    return word_bytes(parse_bytes32(value)) if kind == "bytes32" else text_word(value)


def _json(value: Value) -> object:
    """Return a value as JSON; a large number is a decimal text, which every signer reads exactly."""
    match value:
        case bytes():
            return "0x" + value.hex()
        case int():
            return str(value)
        case str():
            return value
        case Mapping():
            return {name: _json(each) for name, each in value.items()}
        case _:
            return [_json(each) for each in value]


def _fields(text: str) -> tuple[TypedField, ...]:
    return tuple(TypedField(*field.split(" ")) for field in text.split(","))


def key_request(domain: Eip712Domain, address: Address, timestamp: str, nonce: int) -> TypedData:
    """Return the typed data by which a wallet requests an API key (L1)."""
    return TypedData(
        domain,
        "ClobAuth",
        _fields("address address,string timestamp,uint256 nonce,string message"),
        {
            "address": checksum_address(address),
            "timestamp": timestamp,
            "nonce": nonce,
            "message": L1_MESSAGE,
        },
    )


def order_data(domain: Eip712Domain, message: Message, struct_version: int = 1) -> TypedData:
    """Return the typed data of an order of a version of its struct."""
    fields = _ORDER_TYPES[struct_version].removeprefix("Order(").removesuffix(")")
    return TypedData(domain, "Order", _fields(fields), message)


def wallet_order_data(order: TypedData, chain_id: int, wallet: Address) -> TypedData:
    """Return the typed data by which the owner of a deposit wallet signs an order of the wallet."""
    message: Message = {
        "contents": order.message,
        "name": WALLET_DOMAIN_NAME,
        "version": WALLET_DOMAIN_VERSION,
        "chainId": chain_id,
        "verifyingContract": checksum_address(wallet),
        "salt": ZERO_BYTES32,
    }
    inner = InnerStruct(order.primary_type, order.fields)
    return TypedData(order.domain, "TypedDataSign", _fields(_WALLET_ORDER_FIELDS), message, inner)


def wallet_batch_data(chain_id: int, batch: WalletBatch) -> TypedData:
    """Return the typed data by which the owner of a deposit wallet signs calls of the wallet."""
    calls: list[Message] = [
        {"target": checksum_address(call.to), "value": call.value_wei, "data": call.calldata}
        for call in batch.calls
    ]
    return TypedData(
        Eip712Domain(WALLET_DOMAIN_NAME, WALLET_DOMAIN_VERSION, chain_id, batch.wallet),
        "Batch",
        _fields("address wallet,uint256 nonce,uint256 deadline,Call[] calls"),
        {
            "wallet": checksum_address(batch.wallet),
            "nonce": batch.nonce,
            "deadline": batch.deadline_s,
            "calls": calls,
        },
        InnerStruct("Call", _fields("address target,uint256 value,bytes data")),
    )


def challenge_data(challenge: Challenge) -> TypedData:
    """Return the typed data of a creator's challenge."""
    return TypedData(
        Eip712Domain(CHALLENGE_NAME, CHALLENGE_VERSION, challenge.chain_id, ZERO_ADDRESS),
        CHALLENGE_TYPE,
        tuple(TypedField(kind, name) for name, kind in CHALLENGE_FIELDS),
        {
            "requestId": challenge.request_id,
            "creator": checksum_address(challenge.creator),
            "payloadHash": challenge.payload_hash,
            "nonce": challenge.nonce,
            "expiresAt": challenge.expires_at_ms,
            "chainId": challenge.chain_id,
        },
    )


class SafeCall(NamedTuple):
    """A transaction of a Safe before it is signed."""

    safe: Address
    to: Address
    calldata: bytes
    nonce: int
    operation: int = OPERATION_CALL


def safe_tx_data(chain_id: int, call: SafeCall) -> TypedData:
    """Return the typed data of a Safe's transaction without gas refund."""
    unused: dict[str, Value] = dict.fromkeys(("value", "safeTxGas", "baseGas", "gasPrice"), 0)
    return TypedData(
        Eip712Domain(chain_id=chain_id, verifying_contract=call.safe),
        "SafeTx",
        _fields(_SAFE_TX_FIELDS),
        unused
        | {
            "to": checksum_address(call.to),
            "data": call.calldata,
            "operation": call.operation,
            "gasToken": ZERO_ADDRESS,
            "refundReceiver": ZERO_ADDRESS,
            "nonce": call.nonce,
        },
    )


def new_safe_data(chain_id: int, factory: Address, factory_name: str) -> TypedData:
    """Return the typed data by which an owner asks for its Safe, without payment."""
    return TypedData(
        Eip712Domain(factory_name, None, chain_id, factory),
        "CreateProxy",
        _fields("address paymentToken,uint256 payment,address paymentReceiver"),
        {"paymentToken": ZERO_ADDRESS, "payment": 0, "paymentReceiver": ZERO_ADDRESS},
    )
