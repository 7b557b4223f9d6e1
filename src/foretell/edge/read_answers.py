"""Answers of public reads, and the rules for dear ones.

Each answer names its content, so that a client or a cache that has it gets no body again. A cheap read returns a few
rows that an index finds. A dear one returns many, skips many, names many markets, or filters or sorts along no index.
The rules read the query alone. They only choose which process answers: the answer is the same.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from litestar import Response

from foretell.edge.codec import AnyRequest, JsonResponse, encode_json
from foretell.edge.query import LIST_SUFFIX, PARAMETERS_MAX

ASKED_AGAIN: Final = "no-cache"
"""A cache may keep the answer, and asks each time whether it is still the same."""
TAG_BYTES: Final = 16
NOT_MODIFIED: Final = 304
ANY: Final = "*"
ORDER: Final = "order"
OFFSET_CHEAP_MAX: Final = 1_000
QUERY_CHEAP_BYTES_MAX: Final = 512
"""A longer query names many markets or events."""


class TaggedContent(NamedTuple):
    """An encoded answer, and the tag that names it."""

    content: bytes
    tag: str


class TaggedParts:
    """An answer that is encoded part by part, and its tag: neither is computed over the whole at once."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, first: bytes = b"") -> None:
        self._hash = hashlib.blake2b(first, digest_size=TAG_BYTES)
        self._parts = [first]

    def add(self, part: bytes) -> None:
        """Append a part."""
        self._hash.update(part)
        self._parts.append(part)

    def end(self) -> TaggedContent:
        """Return the whole."""
        return TaggedContent(b"".join(self._parts), f'"{self._hash.hexdigest()}"')


def read_json(request: AnyRequest, value: object, *, kept_s: int = 0) -> JsonResponse:
    """Return the value as a JSON answer that caches may keep for a time, or 304 to a client that has it."""
    return encoded_json(request, encode_json(value), kept_s=kept_s)


def encoded_json(request: AnyRequest, content: bytes, *, kept_s: int = 0) -> JsonResponse:
    """Return such an answer, of content that is JSON already."""
    return tagged_json(request, TaggedParts(content).end(), kept_s=kept_s)


def tagged_json(request: AnyRequest, tagged: TaggedContent, *, kept_s: int = 0) -> JsonResponse:
    """Return such an answer, of content that is JSON already and whose tag is known."""
    content, tag = tagged
    headers = {"etag": tag, "cache-control": f"public, max-age={kept_s}" if kept_s else ASKED_AGAIN}
    if _has(request.headers.get("if-none-match", ""), tag):
        return Response(b"", status_code=NOT_MODIFIED, headers=headers)
    return Response(content, media_type="application/json", headers=headers)


def _has(known: str, tag: str) -> bool:
    """Return whether a list of tags names this one; a proxy that compresses makes a tag weak."""
    tags = {each.strip().removeprefix("W/") for each in known.split(",")}
    return tag in tags or ANY in tags


class DearRule(NamedTuple):
    """When a read of a route is dear: by its rows, or by a parameter that is present.

    Where there are `indexed_orders` (in small letters), any other `order` is dear, and so are several.
    """

    rows_max: int = 100
    dear_names: Collection[str] = ()
    limit_name: str = "limit"
    indexed_orders: Collection[str] = ()

    def is_dear(self, query: bytes) -> bool:
        """Return whether a read with this query is dear; a malformed query is refused soon, so it is cheap."""
        if len(query) > QUERY_CHEAP_BYTES_MAX:
            return True
        try:
            parsed = parse_qsl(query.decode("latin-1"), max_num_fields=PARAMETERS_MAX)
        except ValueError:
            return False
        pairs = [(name.removesuffix(LIST_SUFFIX), value) for name, value in parsed]
        return self._is_order_dear(pairs) or any(self._makes_dear(*pair) for pair in pairs)

    def _is_order_dear(self, pairs: Sequence[tuple[str, str]]) -> bool:
        orders = [value.replace("_", "").lower() for name, value in pairs if name == ORDER]
        if not orders or not self.indexed_orders:
            return False
        return len(orders) > 1 or orders[0] not in self.indexed_orders

    def _makes_dear(self, name: str, value: str) -> bool:
        if name in self.dear_names:
            return True
        most = {self.limit_name: self.rows_max, "offset": OFFSET_CHEAP_MAX}.get(name)
        is_number = value.isascii() and value.isdigit()
        return most is not None and is_number and int(value) > most


DearRules = Mapping[str, DearRule]
"""The rules of an API by the paths of its routes; a read of any other path is cheap."""
