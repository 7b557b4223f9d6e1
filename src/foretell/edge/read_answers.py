"""Answers of public reads: each names its content, so that a client or a cache that has it gets no body again."""

import hashlib
from typing import Final

from litestar import Response

from foretell.edge.codec import AnyRequest, JsonResponse, encode_json

ASKED_AGAIN: Final = "no-cache"
"""A cache may keep the answer, and asks each time whether it is still the same."""
TAG_BYTES: Final = 16
NOT_MODIFIED: Final = 304
ANY: Final = "*"


def read_json(request: AnyRequest, value: object, *, kept_s: int = 0) -> JsonResponse:
    """Return the value as a JSON answer that caches may keep for a time, or 304 to a client that has it."""
    return encoded_json(request, encode_json(value), kept_s=kept_s)


def encoded_json(request: AnyRequest, content: bytes, *, kept_s: int = 0) -> JsonResponse:
    """Return such an answer, of content that is JSON already."""
    tag = f'"{hashlib.blake2b(content, digest_size=TAG_BYTES).hexdigest()}"'
    headers = {"etag": tag, "cache-control": f"public, max-age={kept_s}" if kept_s else ASKED_AGAIN}
    if _has(request.headers.get("if-none-match", ""), tag):
        return Response(b"", status_code=NOT_MODIFIED, headers=headers)
    return Response(content, media_type="application/json", headers=headers)


def _has(known: str, tag: str) -> bool:
    """Return whether a list of tags names this one; a proxy that compresses makes a tag weak."""
    tags = {each.strip().removeprefix("W/") for each in known.split(",")}
    return tag in tags or ANY in tags
