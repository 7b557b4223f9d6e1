"""Creation requests: each step of a request is stored, and the next step continues from it.

A move is a compare-and-set: it names the status it moves from, and does nothing when the request has
another status by now. Written by creation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypedDict, Unpack

import msgspec
import sqlalchemy as sa

from foretell.domain.creation.plan import PlanItem, PlanTx
from foretell.domain.creation.request import (
    ENDED,
    RUNNING,
    Challenge,
    RequestStatus,
    RequestTrigger,
    advance_request,
)
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.creation.documents import (
    StoredMetadataUpdate,
    StoredRegistration,
    decode,
    decode_plan,
    encode,
    encode_plan,
)
from foretell.store.database import Transaction
from foretell.store.tables import request_images, request_txs, requests
from foretell.store.text_order import by_code_points

TOPIC: Final = "requests"
RUNNING_MAX: Final = 1000


class RequestTx(NamedTuple):
    """A hash that the creator sent for an item, and whether the chain confirmed it."""

    item_id: str
    tx_hash: Bytes32
    is_verified: bool


class RunningRequest(NamedTuple):
    """What the worker needs of a request before it takes its next step."""

    request_id: str
    creator: Address
    status: RequestStatus
    entered_at_ms: int


class StoredWait(msgspec.Struct, frozen=True):
    """What a request waits for: a refusal's code and message, and until when."""

    code: str
    message: str
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CreationRequest:
    """A stored request."""

    challenge: Challenge
    status: RequestStatus
    created_at_ms: int
    updated_at_ms: int
    entered_at_ms: int
    error_message: str | None
    payload: bytes | None
    signature: str | None
    images_hash: str | None
    image_ids: Mapping[str, str]
    plan: tuple[PlanItem, ...] | None
    register_results: tuple[StoredRegistration, ...]
    metadata_updates: tuple[StoredMetadataUpdate, ...]
    metadata_plan: tuple[PlanItem, ...]
    txs: tuple[RequestTx, ...]
    wait: StoredWait | None = None

    @property
    def request_id(self) -> str:
        """The request's id."""
        return self.challenge.request_id

    @property
    def creator(self) -> Address:
        """The account that signs the request and sends its transactions."""
        return self.challenge.creator

    @property
    def hash_by_id(self) -> dict[str, Bytes32]:
        """The hash of each item that has one, by item id."""
        return {tx.item_id: tx.tx_hash for tx in self.txs}


class RequestChanges(TypedDict, total=False):
    """Columns that change when a request moves."""

    payload: bytes
    signature: str
    source: str
    images_hash: str
    error_message: str
    plan: Sequence[PlanItem]
    register_results: Sequence[StoredRegistration]
    metadata_updates: Sequence[StoredMetadataUpdate]
    metadata_plan: Sequence[PlanItem]
    wait: StoredWait | None


_DOCUMENTS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "plan": encode_plan,
        "register_results": encode,
        "metadata_updates": encode,
        "metadata_plan": encode_plan,
        "wait": msgspec.to_builtins,
    }
)


async def load_request(tx: Transaction, request_id: str) -> CreationRequest | None:
    """Return a request with all hashes that were sent for it."""
    row = await tx.first(sa.select(requests).where(requests.c.request_id == request_id))
    return None if row is None else _request(row, await _load_txs(tx, request_id))


async def load_latest(
    tx: Transaction, creator: Address, chain_id: int | None, now_ms: int
) -> CreationRequest | None:
    """Return the newest request of a creator that can continue.

    Anyone may request a challenge in a creator's name, so an unsigned one is returned only when
    there is no other.
    """
    is_unsigned = requests.c.status == RequestStatus.AUTH_PENDING
    conditions = [
        requests.c.creator == creator,
        requests.c.status.not_in(ENDED),
        sa.or_(~is_unsigned, requests.c.expires_at_ms >= now_ms),
    ]
    conditions += [] if chain_id is None else [requests.c.chain_id == chain_id]
    row = await tx.first(
        sa.select(requests)
        .where(*conditions)
        .order_by(
            sa.case((is_unsigned, 1), else_=0),
            requests.c.created_at_ms.desc(),
            requests.c.request_id.desc(),
        )
        .limit(1)
    )
    return None if row is None else _request(row, await _load_txs(tx, row.request_id))


async def load_running(tx: Transaction) -> list[RunningRequest]:
    """Return the requests with work to do: those that finalize first, then the longest waiting."""
    is_preparing = requests.c.status == RequestStatus.PREPARE_RUNNING
    rows = await tx.all(
        sa.select(
            requests.c.request_id, requests.c.creator, requests.c.status, requests.c.entered_at_ms
        )
        .where(requests.c.status.in_(RUNNING))
        .order_by(
            sa.case((is_preparing, 1), else_=0), requests.c.entered_at_ms, requests.c.request_id
        )
        .limit(RUNNING_MAX)
    )
    return [
        RunningRequest(
            row.request_id, Address(row.creator), RequestStatus(row.status), row.entered_at_ms
        )
        for row in rows
    ]


async def record_waits(tx: Transaction, waits: Sequence[tuple[RunningRequest, StoredWait]]) -> None:
    """Store what requests wait for, except of those that have moved."""
    await tx.execute(
        requests.update()
        .where(
            requests.c.request_id == sa.bindparam("waiting_id"),
            requests.c.status == sa.bindparam("waiting_status"),
        )
        .values(wait=sa.bindparam("stored_wait")),
        [
            {
                "waiting_id": request.request_id,
                "waiting_status": request.status,
                "stored_wait": msgspec.to_builtins(wait),
            }
            for request, wait in waits
        ],
    )


async def move_request(
    tx: Transaction,
    request: CreationRequest | RunningRequest,
    trigger: RequestTrigger,
    now_ms: int,
    **changes: Unpack[RequestChanges],
) -> bool:
    """Apply a trigger and its changes to a request; return False when it was moved in between.

    The address of the client is kept only when it is among the changes, or the request becomes a plan, which counts for
    it; and of a failed request neither the payload, whose hash is in the challenge, nor the images.
    """
    next_status = advance_request(request.status, trigger)
    is_failed = next_status is RequestStatus.FAILED
    dropped: dict[str, Any] = {"payload": None} if is_failed else {}
    if trigger is not RequestTrigger.PLAN_BUILT:
        dropped["source"] = ""
    columns: dict[str, Any] = {"wait": None, **dropped} | {
        name: _DOCUMENTS[name](value) if name in _DOCUMENTS else value
        for name, value in changes.items()
    }
    changed = await tx.execute(
        requests.update()
        .where(requests.c.request_id == request.request_id, requests.c.status == request.status)
        .values(status=next_status, updated_at_ms=now_ms, entered_at_ms=now_ms, **columns)
    )
    if is_failed and changed == 1:
        await drop_images(tx, request.request_id)
    await tx.announce(TOPIC)
    return changed == 1


async def record_image_ids(
    tx: Transaction, request_id: str, id_by_field: Mapping[str, str], now_ms: int
) -> None:
    """Store the media ids of a request's images, by field."""
    await tx.execute(
        requests.update()
        .where(requests.c.request_id == request_id)
        .values(images=dict(id_by_field), updated_at_ms=now_ms)
    )


async def record_txs(
    tx: Transaction, request: CreationRequest, sent: Sequence[PlanTx], now_ms: int
) -> bool:
    """Store hashes, each replacing an earlier one; return False when the request was moved.

    The request stays locked against other moves and hashes until the transaction ends.
    """
    changed = await tx.execute(
        requests.update()
        .where(requests.c.request_id == request.request_id, requests.c.status == request.status)
        .values(updated_at_ms=now_ms if sent else requests.c.updated_at_ms)
    )
    if changed != 1 or not sent:
        return changed == 1
    await tx.execute(
        request_txs.delete().where(
            request_txs.c.request_id == request.request_id,
            request_txs.c.item_id.in_([each.item_id for each in sent]),
        )
    )
    rows = [
        {
            "request_id": request.request_id,
            "item_id": each.item_id,
            "tx_hash": each.tx_hash,
            "is_verified": False,
        }
        for each in sent
    ]
    await tx.execute(request_txs.insert(), rows)
    return True


async def record_verified(tx: Transaction, request_id: str, item_ids: Sequence[str]) -> None:
    """Store that the chain confirmed these items."""
    await tx.execute(
        request_txs.update()
        .where(request_txs.c.request_id == request_id, request_txs.c.item_id.in_(item_ids))
        .values(is_verified=True)
    )


async def record_images(
    tx: Transaction, request_id: str, content_by_field: Mapping[str, bytes]
) -> None:
    """Store the images of a request until the media store has them."""
    rows = [
        {"request_id": request_id, "field": field, "content": content}
        for field, content in content_by_field.items()
    ]
    await tx.execute(request_images.insert(), rows)


async def load_images(tx: Transaction, request_id: str) -> dict[str, bytes]:
    """Return the stored images of a request, by field."""
    rows = await tx.all(
        sa.select(request_images)
        .where(request_images.c.request_id == request_id)
        .order_by(by_code_points(request_images.c.field))
    )
    return {row.field: row.content for row in rows}


async def drop_images(tx: Transaction, request_id: str) -> None:
    """Delete the stored images of a request."""
    await tx.execute(request_images.delete().where(request_images.c.request_id == request_id))


async def _load_txs(tx: Transaction, request_id: str) -> tuple[RequestTx, ...]:
    rows = await tx.all(
        sa.select(request_txs)
        .where(request_txs.c.request_id == request_id)
        .order_by(by_code_points(request_txs.c.item_id))
    )
    return tuple(RequestTx(row.item_id, Bytes32(row.tx_hash), row.is_verified) for row in rows)


def _request(row: sa.Row[Any], txs: tuple[RequestTx, ...]) -> CreationRequest:
    return CreationRequest(
        challenge=Challenge(
            request_id=row.request_id,
            creator=Address(row.creator),
            payload_hash=Bytes32(row.payload_hash),
            nonce=Bytes32(row.nonce),
            expires_at_ms=row.expires_at_ms,
            chain_id=row.chain_id,
        ),
        status=RequestStatus(row.status),
        created_at_ms=row.created_at_ms,
        updated_at_ms=row.updated_at_ms,
        entered_at_ms=row.entered_at_ms,
        error_message=row.error_message,
        payload=row.payload,
        signature=row.signature,
        images_hash=row.images_hash,
        image_ids=row.images,
        plan=None if row.plan is None else decode_plan(row.plan),
        register_results=decode(row.register_results, StoredRegistration),
        metadata_updates=decode(row.metadata_updates, StoredMetadataUpdate),
        metadata_plan=decode_plan(row.metadata_plan),
        txs=txs,
        wait=None if row.wait is None else msgspec.convert(row.wait, StoredWait),
    )
