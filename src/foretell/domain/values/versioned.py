"""Encoding of bodies with a version, so that bytes of another version are refused."""

from typing import Final, Generic, TypeVar

import msgspec

from foretell.domain.errors.storage import SnapshotUnknown

BodyType = TypeVar("BodyType", bound=msgspec.Struct)


class _Head(msgspec.Struct, frozen=True, array_like=True):
    version: int


_ENCODER: Final = msgspec.msgpack.Encoder()
_HEAD_DECODER: Final = msgspec.msgpack.Decoder(_Head)


class Versioned(Generic[BodyType]):
    """The codec of one version of a body, an array whose first entry is the version."""

    def __init__(self, version: int, body: type[BodyType]) -> None:
        self._version = version
        self._decoder = msgspec.msgpack.Decoder(body)

    def encode(self, body: BodyType) -> bytes:
        """Return the bytes of a body."""
        return _ENCODER.encode(body)

    def decode(self, raw: bytes) -> BodyType:
        """Return the decoded body, or refuse bytes of another version or of no body."""
        try:
            version = _HEAD_DECODER.decode(raw).version
            if version != self._version:
                raise SnapshotUnknown(
                    f"it has version {version}, and this program supports version {self._version}"
                )
            return self._decoder.decode(raw)
        except msgspec.MsgspecError as error:
            raise SnapshotUnknown(str(error)) from error
