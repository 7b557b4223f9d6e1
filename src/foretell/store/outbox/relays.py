"""Relay requests: what owners of wallets signed and submitted, and its state.

A claim belongs to one open request at a time; the database decides between two that arrive at once. A
move is a compare-and-set, and releases the claim when it ends the request. Written by the relayer.
"""

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from foretell.domain.relay.request import DEAD, OPEN, RelayKind, RelayRequest, RelayState
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.outbox.relay_hours import add_relay, remove_relay
from foretell.store.tables import relay_requests
from foretell.store.tables.sending import COUNTED

TOPIC: Final = "relays"

_OPEN: Final = sorted(state.value for state in OPEN)
_DEAD: Final = sorted(state.value for state in DEAD)
_NO_NONCE: Final = -1
_AGE: Final = (
    relay_requests.c.created_at_ms,
    sa.func.coalesce(relay_requests.c.safe_nonce, _NO_NONCE),
    relay_requests.c.transaction_id,
)


async def record_relay(tx: Transaction, request: RelayRequest) -> bool:
    """Store a new request, or return False when an open request has its claim."""
    is_new = await tx.insert_new(
        relay_requests,
        by=relay_requests.c.claim,
        transaction_id=request.transaction_id,
        kind=request.kind.value,
        owner=request.owner,
        submitter=request.submitter,
        wallet=request.wallet,
        target=request.target,
        operation=request.operation,
        safe_nonce=request.safe_nonce,
        digest=request.digest,
        gas=request.gas,
        metadata_label=request.metadata,
        created_at_ms=request.created_at_ms,
        **_content(request),
        **_changing(request),
    )
    if is_new:
        await add_relay(tx, request)
        await tx.announce(TOPIC)
    return is_new


async def record_relay_move(tx: Transaction, was: RelayRequest, now: RelayRequest) -> bool:
    """Store a new state, or return False when the request is no longer in the old one.

    A request that is refused was never sent, and is taken off the budgets.
    """
    values = _changing(now)
    if now.state is RelayState.INVALID:
        values |= _content(now)
    changed = await tx.execute(
        relay_requests.update()
        .where(
            relay_requests.c.transaction_id == was.transaction_id,
            relay_requests.c.state == was.state.value,
        )
        .values(values)
    )
    if changed and now.state is RelayState.INVALID:
        await remove_relay(tx, now)
    await tx.announce(TOPIC)
    return changed == 1


async def load_relay(tx: Transaction, transaction_id: str) -> RelayRequest | None:
    """Return a request by its id, or None."""
    found = await _load(tx, relay_requests.c.transaction_id == transaction_id, limit=1)
    return found[0] if found else None


async def load_same_relay(tx: Transaction, wallet: Address, digest: Bytes32) -> RelayRequest | None:
    """Return the request with the same signed digest, unless it failed."""
    columns = relay_requests.c
    is_same = (columns.wallet == wallet) & (columns.digest == digest)
    found = await _load(tx, is_same & columns.state.not_in(_DEAD), limit=1)
    return found[0] if found else None


async def load_claimed_nonces(
    tx: Transaction, wallet: Address, from_nonce: int, *, is_open: bool = True
) -> frozenset[int]:
    """Return the nonces of a wallet's requests from `from_nonce` on.

    With `is_open` those of open requests, otherwise those of all requests that have not failed.
    """
    columns = relay_requests.c
    has_nonce = (columns.wallet == wallet) & (columns.safe_nonce >= from_nonce)
    counts = columns.state.in_(_OPEN) if is_open else columns.state.not_in(_DEAD)
    rows = await tx.all(sa.select(columns.safe_nonce).where(has_nonce, counts))
    return frozenset(row.safe_nonce for row in rows)


async def load_relay_time(tx: Transaction, owner: Address, place: int, since_ms: int) -> int | None:
    """Return when the `place`-th newest request of an owner since a time came, without those that were never sent."""
    created_at_ms = relay_requests.c.created_at_ms
    times = sa.select(created_at_ms).where(_counted(owner, since_ms))
    row = await tx.first(times.order_by(created_at_ms.desc()).offset(place - 1).limit(1))
    return None if row is None else row.created_at_ms


async def load_relay_gas(tx: Transaction, owner: Address, since_ms: int) -> int:
    """Return the gas that an owner's requests since a time may use, without those that were never sent."""
    query = sa.select(sa.func.coalesce(sa.func.sum(relay_requests.c.gas), 0))
    return int(await tx.scalar(query.where(_counted(owner, since_ms))))


async def load_open_relays(
    tx: Transaction, limit: int, after: RelayRequest | None = None
) -> Sequence[RelayRequest]:
    """Return the oldest requests whose outcome is not final, or the oldest after one of them."""
    is_open = relay_requests.c.state.in_(_OPEN)
    if after is None:
        return await _load(tx, is_open, limit=limit)
    nonce = _NO_NONCE if after.safe_nonce is None else after.safe_nonce
    place = sa.tuple_(after.created_at_ms, nonce, after.transaction_id)
    return await _load(tx, is_open & (sa.tuple_(*_AGE) > place), limit=limit)


async def load_relays_of(tx: Transaction, address: Address, limit: int) -> Sequence[RelayRequest]:
    """Return the requests that an address signed or submitted for others, the newest first."""
    columns = relay_requests.c
    rows = await tx.all(
        sa.select(relay_requests)
        .where((columns.owner == address) | (columns.submitter == address))
        .order_by(
            columns.created_at_ms.desc(),
            columns.safe_nonce.desc().nulls_last(),
            columns.transaction_id,
        )
        .limit(limit)
    )
    return [_request(row) for row in rows]


async def forget_refused_relays(tx: Transaction, before_ms: int, limit: int) -> int:
    """Delete requests that were refused before a time, at most this many, and return how many there were."""
    columns = relay_requests.c
    was_refused = (columns.state == RelayState.INVALID.value) & (columns.updated_at_ms < before_ms)
    oldest = sa.select(columns.transaction_id).where(was_refused).limit(limit)
    return await tx.execute(relay_requests.delete().where(columns.transaction_id.in_(oldest)))


def _counted(owner: Address, since_ms: int) -> sa.ColumnElement[bool]:
    columns = relay_requests.c
    return sa.and_(COUNTED, columns.owner == owner, columns.created_at_ms > since_ms)


async def _load(
    tx: Transaction, condition: sa.ColumnElement[bool], limit: int
) -> Sequence[RelayRequest]:
    rows = await tx.all(sa.select(relay_requests).where(condition).order_by(*_AGE).limit(limit))
    return [_request(row) for row in rows]


def _content(request: RelayRequest) -> dict[str, Any]:
    """Return the columns that a refused request gives up."""
    return {
        "calldata": "0x" + request.calldata.hex(),
        "signature": "0x" + request.signature.hex(),
    }


def _changing(request: RelayRequest) -> dict[str, Any]:
    """Return the columns that a move changes."""
    return {
        "claim": request.claim,
        "state": request.state.value,
        "failure": request.failure,
        "updated_at_ms": request.updated_at_ms,
    }


def _request(row: sa.Row[Any]) -> RelayRequest:
    return RelayRequest(
        transaction_id=row.transaction_id,
        kind=RelayKind(row.kind),
        owner=Address(row.owner),
        submitter=Address(row.submitter),
        wallet=Address(row.wallet),
        target=Address(row.target),
        calldata=bytes.fromhex(row.calldata[2:]),
        operation=row.operation,
        safe_nonce=row.safe_nonce,
        signature=bytes.fromhex(row.signature[2:]),
        digest=Bytes32(row.digest),
        gas=row.gas,
        metadata=row.metadata_label,
        created_at_ms=row.created_at_ms,
        updated_at_ms=row.updated_at_ms,
        state=RelayState(row.state),
        failure=row.failure,
    )
