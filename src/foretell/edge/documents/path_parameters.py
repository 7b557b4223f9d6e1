"""The meanings of the parts of paths, which have one name and one meaning in all APIs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ABOUT_BY_NAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        "address": "address of an account or of its wallet, 20 bytes in hexadecimal",
        "blob_id": "id that the upload of the file returned",
        "builder_code": "code of the builder, 32 bytes in hexadecimal",
        "comment_id": "id of a comment; there are none",
        "condition_id": "condition id of the market, 32 bytes in hexadecimal",
        "event_id": "id of the event, a decimal number",
        "market_id": "id of the market, a decimal number, or its condition id",
        "order_id": "id of the order, its digest of 32 bytes in hexadecimal",
        "record_id": "id of a record; there are none of this kind",
        "series_id": "id of the series, a decimal number",
        "slug": "slug: words of small letters and digits with hyphens between them",
        "tag_id": "id of the tag, a decimal number",
        "token_id": "token id, a decimal string",
        "transaction_id": "id that the submission of the transaction returned",
    }
)
