"""Strict parsing of submissions: a wrong field refuses the body and is named.

Every value is a string, as signing libraries produce them. Values without a choice, such as the refund
of gas, must be present and have their one value. Other fields are ignored.
"""

import re
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.deposit_wallet import CALL_BYTES_MAX, CALLS_PER_BATCH_MAX
from foretell.domain.contracts.proxy_wallet import PROXY_CALLDATA_BYTES_MAX
from foretell.domain.contracts.safe import (
    OPERATION_CALL,
    OPERATION_DELEGATECALL,
    InnerCall,
    normalize_safe_signature,
)
from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.http import MalformedBody
from foretell.domain.errors.relayer import InvalidField
from foretell.domain.relay.request import RelayKind
from foretell.domain.values.eip712 import SIGNATURE_BYTES, normalize_signature
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, parse_address, parse_bytes
from foretell.domain.values.strict_json import parse_json

BODY_BYTES_MAX: Final = 256 * 1024
CALLDATA_BYTES_MAX: Final = 64 * 1024
METADATA_CHARS_MAX: Final = 500
NONCE_MAX: Final = 2**63 - 1

_NONCE: Final = re.compile(r"(?:0|[1-9]\d{0,18})\Z", re.ASCII)


class Submission(NamedTuple):
    """A transaction or a deployment of an owner's wallet; the signature is not checked yet."""

    kind: RelayKind
    owner: Address
    wallet: Address
    target: Address
    calldata: bytes
    operation: int
    safe_nonce: int | None
    signature: bytes
    metadata: str | None
    calls: tuple[InnerCall, ...] = ()
    """The calls of a deposit wallet's batch."""
    deadline_s: int = 0
    gas_limit: int = 0
    """What the calls of a proxy wallet may spend."""
    hub: Address = ZERO_ADDRESS
    relay: Address = ZERO_ADDRESS
    """The account that the owner of a proxy wallet signed for."""


def parse_submission(raw: bytes, kinds: Collection[RelayKind] = tuple(RelayKind)) -> Submission:
    """Return the submission in a body, or refuse the body and name its first wrong field."""
    document = parse_json(raw)
    if not isinstance(document, dict):
        raise MalformedBody("the body must be a JSON object")
    fields = _Fields(document)
    kind = RelayKind(fields.choice("type", *kinds))
    return _PARSERS[kind](fields)


def parse_deployment(deployment: Deployment, raw: bytes) -> Submission:
    """Return the deployment of an owner's wallet that a short body asks for, or refuse the body."""
    document = parse_json(raw)
    if not isinstance(document, dict):
        raise MalformedBody("the body must be a JSON object")
    fields = _Fields(document)
    fields.zero_address("paymentToken")
    fields.choice("payment", "0")
    fields.zero_address("paymentReceiver")
    owner = fields.address("owner")
    return Submission(
        kind=RelayKind.SAFE_CREATE,
        owner=owner,
        wallet=deployment.safe_of(owner),
        target=deployment.safe_factory,
        calldata=b"",
        operation=OPERATION_CALL,
        safe_nonce=None,
        signature=normalize_signature(fields.raw_bytes("signature", SIGNATURE_BYTES)),
        metadata=None,
    )


def _safe_submission(fields: "_Fields") -> Submission:
    params = fields.part("signatureParams")
    operation = params.choice("operation", str(OPERATION_CALL), str(OPERATION_DELEGATECALL))
    is_spelt_out = params.has("safeTxGas") and not params.has("safeTxnGas")
    params.choice("safeTxGas" if is_spelt_out else "safeTxnGas", "0")
    params.choice("baseGas", "0")
    params.choice("gasPrice", "0")
    params.zero_address("gasToken")
    params.zero_address("refundReceiver")
    if fields.has("value"):
        fields.choice("value", "0")
    return Submission(
        kind=RelayKind.SAFE,
        owner=fields.address("from"),
        wallet=fields.address("proxyWallet"),
        target=fields.address("to"),
        calldata=fields.raw_bytes("data", CALLDATA_BYTES_MAX),
        operation=int(operation),
        safe_nonce=fields.nonce("nonce"),
        signature=normalize_safe_signature(fields.raw_bytes("signature", SIGNATURE_BYTES)),
        metadata=fields.label("metadata"),
    )


def _create_submission(fields: "_Fields") -> Submission:
    params = fields.part("signatureParams")
    params.zero_address("paymentToken")
    params.choice("payment", "0")
    params.zero_address("paymentReceiver")
    fields.choice("data", "0x")
    return Submission(
        kind=RelayKind.SAFE_CREATE,
        owner=fields.address("from"),
        wallet=fields.address("proxyWallet"),
        target=fields.address("to"),
        calldata=b"",
        operation=OPERATION_CALL,
        safe_nonce=None,
        signature=normalize_signature(fields.raw_bytes("signature", SIGNATURE_BYTES)),
        metadata=fields.label("metadata"),
    )


def _batch_submission(fields: "_Fields") -> Submission:
    params = fields.part("depositWalletParams")
    calls = params.parts("calls", CALLS_PER_BATCH_MAX)
    return Submission(
        kind=RelayKind.WALLET,
        owner=fields.address("from"),
        wallet=params.address("depositWallet"),
        target=fields.address("to"),
        calldata=b"",
        operation=OPERATION_CALL,
        safe_nonce=fields.nonce("nonce"),
        signature=normalize_signature(fields.raw_bytes("signature", SIGNATURE_BYTES)),
        metadata=fields.label("metadata"),
        calls=tuple(map(_batched_call, calls)),
        deadline_s=params.nonce("deadline"),
    )


def _batched_call(fields: "_Fields") -> InnerCall:
    fields.choice("value", "0")
    return InnerCall(fields.address("target"), fields.raw_bytes("data", CALL_BYTES_MAX))


def _wallet_creation(fields: "_Fields") -> Submission:
    return Submission(
        kind=RelayKind.WALLET_CREATE,
        owner=fields.address("from"),
        wallet=ZERO_ADDRESS,
        target=fields.address("to"),
        calldata=b"",
        operation=OPERATION_CALL,
        safe_nonce=None,
        signature=b"",
        metadata=fields.label("metadata"),
    )


def _proxy_submission(fields: "_Fields") -> Submission:
    params = fields.part("signatureParams")
    params.choice("gasPrice", "0")
    params.choice("relayerFee", "0")
    if fields.has("value"):
        fields.choice("value", "0")
    return Submission(
        kind=RelayKind.PROXY,
        owner=fields.address("from"),
        wallet=fields.address("proxyWallet"),
        target=fields.address("to"),
        calldata=fields.raw_bytes("data", PROXY_CALLDATA_BYTES_MAX),
        operation=OPERATION_CALL,
        safe_nonce=fields.nonce("nonce"),
        signature=normalize_signature(fields.raw_bytes("signature", SIGNATURE_BYTES)),
        metadata=fields.label("metadata"),
        gas_limit=params.nonce("gasLimit"),
        hub=params.address("relayHub"),
        relay=params.address("relay"),
    )


class _Fields:
    """The fields of an object; refusals prefix their names with `path`."""

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self._values = values
        self._path = path

    def has(self, name: str) -> bool:
        """Return whether a field is present, also as null."""
        return name in self._values

    def part(self, name: str) -> "_Fields":
        """Return the fields of a nested object."""
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise self._refusal(name, "an object")
        return _Fields(value, f"{self._path}{name}.")

    def parts(self, name: str, count_max: int) -> "list[_Fields]":
        """Return the fields of each object in a list of at least one."""
        values = self._values.get(name)
        if (
            not isinstance(values, list)
            or not 0 < len(values) <= count_max
            or not all(isinstance(value, dict) for value in values)
        ):
            raise self._refusal(name, f"a list of 1 to {count_max} objects")
        return [
            _Fields(value, f"{self._path}{name}[{number}].") for number, value in enumerate(values)
        ]

    def choice(self, name: str, *choices: str) -> str:
        """Return a text that is one of the choices."""
        value = self._values.get(name)
        if not isinstance(value, str) or value not in choices:
            raise self._refusal(name, " or ".join(f'"{choice}"' for choice in choices))
        return value

    def address(self, name: str) -> Address:
        """Return an address, written in any case."""
        try:
            return parse_address(self._values.get(name))
        except MalformedHex as error:
            raise self._refusal(name, "an address: 0x and 40 hex digits") from error

    def zero_address(self, name: str) -> None:
        """Refuse any address but zero."""
        if self.address(name) != ZERO_ADDRESS:
            raise self._refusal(name, "the zero address")

    def raw_bytes(self, name: str, bytes_max: int) -> bytes:
        """Return bytes from hex digits."""
        try:
            return parse_bytes(self._values.get(name), name, bytes_max)
        except MalformedHex as error:
            wanted = f"at most {bytes_max} bytes: 0x and pairs of hex digits"
            raise self._refusal(name, wanted) from error

    def nonce(self, name: str) -> int:
        """Return a nonce of a wallet."""
        value = self._values.get(name)
        if not isinstance(value, str) or _NONCE.match(value) is None or int(value) > NONCE_MAX:
            raise self._refusal(name, "a decimal integer in a string")
        return int(value)

    def label(self, name: str) -> str | None:
        """Return a text of the client's choice, or None when it is absent or null."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or len(value) > METADATA_CHARS_MAX or "\0" in value:
            wanted = (
                f"null or a string of at most {METADATA_CHARS_MAX} characters, none of them zero"
            )
            raise self._refusal(name, wanted)
        return value

    def _refusal(self, name: str, wanted: str) -> InvalidField:
        return InvalidField(self._path + name, wanted)


_PARSERS: Final[Mapping[RelayKind, Callable[[_Fields], Submission]]] = MappingProxyType(
    {
        RelayKind.SAFE: _safe_submission,
        RelayKind.SAFE_CREATE: _create_submission,
        RelayKind.WALLET: _batch_submission,
        RelayKind.WALLET_CREATE: _wallet_creation,
        RelayKind.PROXY: _proxy_submission,
    }
)
