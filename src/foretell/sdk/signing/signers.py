"""Signers: a private key in this process, or a program elsewhere that holds it.

A client asks a signer for three kinds of signatures: over typed data (orders, API keys, challenges,
transactions of a Safe), over the account's own transactions, and over the calls of a proxy wallet, as a
personal message.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, Self

from foretell.domain.errors.chain import MalformedTransaction
from foretell.domain.errors.command import SignerRefused
from foretell.domain.errors.families import MalformedHex, MalformedSignature
from foretell.domain.evm.raw_transaction import (
    DYNAMIC_FEE_TYPE,
    SignedTx,
    TxFields,
    sign_tx,
    unsigned_items,
)
from foretell.domain.evm.rlp import decode_list, encode_list
from foretell.domain.values.eip712 import (
    SIGNATURE_BYTES,
    address_of_key,
    normalize_signature,
    personal_digest,
    recover_signer,
    sign_digest,
)
from foretell.domain.values.hexadecimal import (
    Address,
    checksum_address,
    keccak256,
    parse_bytes,
    word_of,
)
from foretell.sdk.json_rpc import JsonRpc
from foretell.sdk.signing.keystore import read_keystore
from foretell.sdk.signing.typed_data import TypedData

RAW_TX_BYTES_MAX: Final = 256 * 1024


class Signer(Protocol):
    """An account that signs."""

    @property
    def address(self) -> Address:
        """The address that the signatures belong to."""

    async def sign_typed(self, typed: TypedData) -> bytes:
        """Return the signature of typed data: r, s and v of 27 or 28, 65 bytes."""

    async def sign_message(self, message: bytes) -> bytes:
        """Return the signature of a personal message (EIP-191) of 32 bytes, in the same form."""

    async def sign_transaction(self, fields: TxFields) -> SignedTx:
        """Return a signed transaction of the account."""


@dataclass(frozen=True, slots=True)
class KeySigner:
    """A private key in this process; its text form does not show the key."""

    private_key: bytes = field(repr=False)

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Return the signer of a key of 64 hex digits, with or without 0x."""
        digits = text.strip().removeprefix("0x")
        return cls(parse_bytes("0x" + digits, "private key", 32).rjust(32, b"\0"))

    @classmethod
    def from_keystore(cls, path: Path, password: str) -> Self:
        """Return the signer of a keystore file, as wallets export it."""
        return cls(read_keystore(path, password))

    @classmethod
    def new(cls, random_bytes: Callable[[int], bytes] = os.urandom) -> Self:
        """Return the signer of a new random key."""
        return cls(random_bytes(32))

    @property
    def address(self) -> Address:
        """The address of the key."""
        return address_of_key(self.private_key)

    async def sign_typed(self, typed: TypedData) -> bytes:
        """Return the signature of typed data."""
        return sign_digest(typed.digest(), self.private_key)

    async def sign_message(self, message: bytes) -> bytes:
        """Return the signature of a personal message of 32 bytes."""
        return sign_digest(personal_digest(message), self.private_key)

    async def sign_transaction(self, fields: TxFields) -> SignedTx:
        """Return a signed transaction."""
        return sign_tx(fields, self.private_key)


@dataclass(frozen=True, slots=True)
class RemoteSigner:
    """An account at a program that signs by JSON-RPC.

    It has the methods `eth_signTypedData_v4` and `eth_signTransaction`, for a proxy wallet `eth_sign` too. Each signature is checked before it is used: a
    signer that answers with another account's is refused.
    """

    rpc: JsonRpc
    account: Address

    @property
    def address(self) -> Address:
        """The account's address."""
        return self.account

    async def sign_typed(self, typed: TypedData) -> bytes:
        """Return the signature of typed data."""
        given = await self.rpc.call(
            "eth_signTypedData_v4", checksum_address(self.account), typed.json_object()
        )
        return self._checked(given, typed.digest())

    async def sign_message(self, message: bytes) -> bytes:
        """Return the signature of a personal message of 32 bytes."""
        text = "0x" + message.hex()
        given = await self.rpc.call("eth_sign", checksum_address(self.account), text)
        return self._checked(given, personal_digest(message))

    def _checked(self, given: object, digest: bytes) -> bytes:
        """Return the signature that the program gave, or refuse one that is not the account's."""
        try:
            signature = normalize_signature(parse_bytes(given, "signature", SIGNATURE_BYTES))
            signer = recover_signer(digest, signature)
        except (MalformedHex, MalformedSignature) as error:
            raise SignerRefused(self.account, error.message) from error
        if signer != self.account:
            raise SignerRefused(self.account, f"the signature is that of {signer}")
        return signature

    async def sign_transaction(self, fields: TxFields) -> SignedTx:
        """Return a signed transaction."""
        request: dict[str, Any] = {
            "from": checksum_address(self.account),
            "to": fields.to and checksum_address(fields.to),
            "data": "0x" + fields.calldata.hex(),
            "value": hex(fields.value_wei),
            "nonce": hex(fields.account_nonce),
            "gas": hex(fields.gas),
            "maxFeePerGas": hex(fields.fees.max_fee_wei),
            "maxPriorityFeePerGas": hex(fields.fees.priority_fee_wei),
            "chainId": hex(fields.chain_id),
        }
        given = await self.rpc.call("eth_signTransaction", request)
        raw = given["raw"] if isinstance(given, dict) and "raw" in given else given
        try:
            signed = parse_bytes(raw, "transaction", RAW_TX_BYTES_MAX)
            check_signed(signed, fields, self.account)
        except (MalformedHex, MalformedSignature, MalformedTransaction) as error:
            raise SignerRefused(self.account, error.message) from error
        return SignedTx(signed, word_of(keccak256(signed)))


def check_signed(raw: bytes, fields: TxFields, account: Address) -> None:
    """Refuse a transaction that is not the one of these fields, signed by the account."""
    unsigned = encode_list(unsigned_items(fields))
    wanted = decode_list(unsigned)
    items = decode_list(raw[1:])
    if raw[:1] != DYNAMIC_FEE_TYPE or items[:-3] != wanted:
        raise MalformedTransaction("the one that was asked for")
    digest = keccak256(DYNAMIC_FEE_TYPE + unsigned)
    parity, r, s = items[-3:]
    signature = r.rjust(32, b"\0") + s.rjust(32, b"\0") + (parity or b"\0")
    signer = recover_signer(digest, normalize_signature(signature))
    if signer != account:
        raise MalformedTransaction(f"signed by {account}, not by {signer}")
