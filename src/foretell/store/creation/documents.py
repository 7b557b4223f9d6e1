"""JSON documents in the rows of creation requests.

Rows of earlier versions have the same keys, so a key must not be renamed.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from foretell.domain.creation.plan import PlanItem
from foretell.domain.values.hexadecimal import checksum_address, parse_address

Stored = TypeVar("Stored", bound=msgspec.Struct)


class StoredRegistration(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The registration of a market's tokens; without a hash they were registered before."""

    key: str
    condition_id: str
    exchange: str
    token_a: str
    token_b: str
    already_registered: bool
    tx_hash: str | None


class StoredMetadataUpdate(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The metadata of a market, and the transaction that sets it on the chain, once it is known."""

    key: str
    condition_id: str
    metadata_tx_id: str
    metadata_uri: str
    update_tx_hash: str | None


class StoredPlanItem(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A call of a plan."""

    id: str
    to: str
    value: str
    data: str
    description: str
    market_key: str | UnsetType = UNSET


def encode_plan(plan: Iterable[PlanItem]) -> list[dict[str, Any]]:
    """Return the document of a plan."""
    return encode(
        StoredPlanItem(
            id=item.item_id,
            to=checksum_address(item.target),
            value=str(item.value_wei),
            data="0x" + item.calldata.hex(),
            description=item.description,
            market_key=UNSET if item.market_key is None else item.market_key,
        )
        for item in plan
    )


def decode_plan(document: Iterable[Any]) -> tuple[PlanItem, ...]:
    """Return the plan in a document."""
    return tuple(
        PlanItem(
            item_id=stored.id,
            target=parse_address(stored.to),
            calldata=bytes.fromhex(stored.data[2:]),
            description=stored.description,
            market_key=None if stored.market_key is UNSET else stored.market_key,
            value_wei=int(stored.value),
        )
        for stored in decode(document, StoredPlanItem)
    )


def encode(stored: Iterable[msgspec.Struct]) -> list[dict[str, Any]]:
    """Return the document of a list."""
    return [msgspec.to_builtins(each) for each in stored]


def decode(document: Iterable[Any], kind: type[Stored]) -> tuple[Stored, ...]:
    """Return the list in a document."""
    return tuple(msgspec.convert(each, kind) for each in document)
