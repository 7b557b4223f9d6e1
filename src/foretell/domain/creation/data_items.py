"""Signed data items (ANS-104) for permanent storage, with ids known before the upload.

The id is the hash of the signature, and the signature is deterministic: the same key, data and tags
give the same item, so storing it twice changes nothing. The published standard does not sign the
signature type; every implementation does, and so does this one.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import coincurve

from foretell.domain.errors.families import MalformedSignature
from foretell.domain.errors.http import MalformedBody
from foretell.domain.values.eip712 import recover_signer, sign_digest
from foretell.domain.values.hexadecimal import address_of, keccak256

ETHEREUM_KEY: Final = 3
"""The signature type of an Ethereum key that signs a personal message."""

ID_CHARS: Final = 43
TAGS_MAX: Final = 128
TAG_BYTES_MAX: Final = 4096

_TYPE_BYTES: Final = 2
_SIGNATURE_BYTES: Final = 65
_OWNER_BYTES: Final = 65
_COUNT_BYTES: Final = 8
_HEADER_BYTES: Final = _TYPE_BYTES + _SIGNATURE_BYTES + _OWNER_BYTES + 2 + 2 * _COUNT_BYTES
_PERSONAL_PREFIX: Final = b"\x19Ethereum Signed Message:\n48"
_SEVEN_BITS: Final = 0x7F


class ItemTag(NamedTuple):
    """The name and the value of a public property of an item."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class DataItem:
    """A signed item: `raw` is stored, `data` is its content."""

    raw: bytes
    signature: bytes
    owner: bytes
    tags: tuple[ItemTag, ...]
    data: bytes

    @property
    def item_id(self) -> str:
        """The id of the item in storage."""
        return (
            base64.urlsafe_b64encode(hashlib.sha256(self.signature).digest()).decode().rstrip("=")
        )

    @property
    def content_type(self) -> str:
        """The media type of the data, by its tags."""
        types = (tag.value for tag in self.tags if tag.name.lower() == "content-type")
        return next(types, "application/octet-stream")


def sign_item(data: bytes, tags: Sequence[ItemTag], private_key: bytes) -> DataItem:
    """Return the data as an item signed by the key."""
    owner = coincurve.PrivateKey(private_key).public_key.format(compressed=False)
    tag_bytes = _encode_tags(tags)
    signature = sign_digest(_signed_digest(owner, tag_bytes, data), private_key)
    raw = b"".join(
        (
            ETHEREUM_KEY.to_bytes(_TYPE_BYTES, "little"),
            signature,
            owner,
            b"\x00\x00",
            len(tags).to_bytes(_COUNT_BYTES, "little"),
            len(tag_bytes).to_bytes(_COUNT_BYTES, "little"),
            tag_bytes,
            data,
        )
    )
    return DataItem(raw, signature, owner, tuple(tags), data)


def parse_item(raw: bytes) -> DataItem:
    """Return the item, its signature verified, or refuse the bytes."""
    if len(raw) < _HEADER_BYTES or raw[:_TYPE_BYTES] != ETHEREUM_KEY.to_bytes(
        _TYPE_BYTES, "little"
    ):
        raise MalformedBody("not a data item of an Ethereum key")
    owner_at = _TYPE_BYTES + _SIGNATURE_BYTES
    flags_at = owner_at + _OWNER_BYTES
    signature, owner = raw[_TYPE_BYTES:owner_at], raw[owner_at:flags_at]
    if raw[flags_at : flags_at + 2] != b"\x00\x00":
        raise MalformedBody("a data item with a target or an anchor")
    counts = raw[flags_at + 2 : _HEADER_BYTES]
    tag_count = int.from_bytes(counts[:_COUNT_BYTES], "little")
    data_at = _HEADER_BYTES + int.from_bytes(counts[_COUNT_BYTES:], "little")
    tag_bytes, data = raw[_HEADER_BYTES:data_at], raw[data_at:]
    tags = _decode_tags(tag_bytes)
    if data_at > len(raw) or len(tags) != tag_count:
        raise MalformedBody("a data item whose tags do not fit their count")
    _check_signature(signature, owner, _signed_digest(owner, tag_bytes, data))
    return DataItem(raw, signature, owner, tags, data)


def _check_signature(signature: bytes, owner: bytes, digest: bytes) -> None:
    try:
        signer = recover_signer(digest, signature)
    except (MalformedSignature, ValueError) as error:
        raise MalformedBody("a data item with an invalid signature") from error
    if signer != address_of(keccak256(owner[1:])[12:]):
        raise MalformedBody("a data item that its owner did not sign")


def _signed_digest(owner: bytes, tag_bytes: bytes, data: bytes) -> bytes:
    chunks = (
        b"dataitem",
        b"1",
        str(ETHEREUM_KEY).encode(),
        owner,
        b"",
        b"",
        tag_bytes,
        data,
    )
    return keccak256(_PERSONAL_PREFIX + _deep_hash(chunks))


def _deep_hash(chunks: Sequence[bytes]) -> bytes:
    """Return a hash of a list of byte strings that differs for every other list."""
    digest = _sha384(b"list" + str(len(chunks)).encode())
    for chunk in chunks:
        tag = _sha384(b"blob" + str(len(chunk)).encode())
        digest = _sha384(digest + _sha384(tag + _sha384(chunk)))
    return digest


def _sha384(data: bytes) -> bytes:
    return hashlib.sha384(data).digest()


def _encode_tags(tags: Sequence[ItemTag]) -> bytes:
    """Return the tags in Avro: one block of pairs of strings, or nothing without tags."""
    if not tags:
        return b""
    assert len(tags) <= TAGS_MAX
    strings = b"".join(_encode_string(text) for tag in tags for text in tag)
    encoded = _encode_count(len(tags)) + strings + b"\x00"
    assert len(encoded) <= TAG_BYTES_MAX
    return encoded


def _encode_string(text: str) -> bytes:
    encoded = text.encode()
    return _encode_count(len(encoded)) + encoded


def _encode_count(count: int) -> bytes:
    """Return a count in Avro's zigzag encoding, seven bits a byte, the lowest first."""
    rest, encoded = count << 1, b""
    while rest > _SEVEN_BITS:
        encoded += bytes([rest & _SEVEN_BITS | 0x80])
        rest >>= 7
    return encoded + bytes([rest])


def _decode_tags(tag_bytes: bytes) -> tuple[ItemTag, ...]:
    """Return the tags, or refuse bytes that `_encode_tags` would not give."""
    if len(tag_bytes) > TAG_BYTES_MAX:
        raise MalformedBody(f"a data item with more than {TAG_BYTES_MAX} bytes of tags")
    if not tag_bytes:
        return ()
    reader = _TagReader(tag_bytes)
    try:
        count = reader.count()
        tags = tuple(
            ItemTag(reader.string(), reader.string()) for _ in range(min(count, TAGS_MAX + 1))
        )
    except (IndexError, UnicodeDecodeError) as error:
        raise MalformedBody("a data item whose tags end too early") from error
    if len(tags) > TAGS_MAX or _encode_tags(tags) != tag_bytes:
        raise MalformedBody("a data item with another encoding of its tags")
    return tags


class _TagReader:
    def __init__(self, tag_bytes: bytes) -> None:
        self._bytes = tag_bytes
        self._at = 0

    def count(self) -> int:
        zigzag, shift = 0, 0
        while True:
            byte = self._bytes[self._at]
            self._at += 1
            zigzag |= (byte & _SEVEN_BITS) << shift
            shift += 7
            if byte <= _SEVEN_BITS:
                return zigzag >> 1

    def string(self) -> str:
        length = self.count()
        self._at += length
        return self._bytes[self._at - length : self._at].decode()
