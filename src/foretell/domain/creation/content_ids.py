"""Content ids of IPFS (CID version 1): the hash of a content, with how to read it.

A content of one block is hashed as it is (a raw leaf), so its id needs no more than SHA-256. A larger one
would be a tree of blocks, whose id depends on how it was cut; what we store fits one block.
"""

import base64
import hashlib
from typing import Final

BLOCK_BYTES_MAX: Final = 256 * 1024
"""The most that every implementation keeps as one block by default."""
CONTENT_ID_CHARS: Final = 59

_VERSION_1: Final = b"\x01"
_RAW: Final = b"\x55"
_SHA_256: Final = b"\x12\x20"
"""The code of the hash and its length in bytes."""
_BASE_32: Final = "b"
_PREFIX: Final = "bafkrei"
"""The beginning of the text of every such id."""


def content_id(content: bytes) -> str:
    """Return the id of a content of at most one block."""
    assert len(content) <= BLOCK_BYTES_MAX
    raw = _VERSION_1 + _RAW + _SHA_256 + hashlib.sha256(content).digest()
    return _BASE_32 + base64.b32encode(raw).decode().rstrip("=").lower()


def is_content_id(text: str) -> bool:
    """Return whether a text has the form of such an id."""
    return len(text) == CONTENT_ID_CHARS and text.startswith(_PREFIX)
