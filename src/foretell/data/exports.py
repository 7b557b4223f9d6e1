"""Exports of a wallet's trades, positions and ledger: rows that are sent while they are read.

The rows of some parts are read in one transaction, so a long export holds no transaction and no connection of the
database while its client is slow. Each row has a cursor: an export that was cut off goes on after the last row that
arrived. It is complete when a request returns no row. Responses that are being sent are bounded in number, for a
client and in all, and in time. They rest in turn between reads, so that all of them together leave the process
to others for most of its time.
"""

import asyncio
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from foretell.data.context import DataContext
from foretell.data.export_forms import ENCODERS, Row, RowEncoder
from foretell.data.parameters import USER
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import MalformedQuery, UnknownRecord
from foretell.domain.values.hexadecimal import Address
from foretell.edge.parameters import integer, required_choice, text
from foretell.edge.query import Query
from foretell.edge.rendering import amount
from foretell.store.database import Transaction
from foretell.store.public_reads.places import client_name
from foretell.store.queries.exports import (
    LEDGER_BEGIN,
    POSITIONS_BEGIN,
    TRADES_BEGIN,
    load_changes_after,
    load_positions_after,
    load_trades_after,
)

ROWS_PER_READ: Final = 100
"""Rows of one transaction until a response begins to rest, so that a short one is not made of many."""
ROWS_PER_PART: Final = 50
"""Rows that are rendered before the process serves other requests, and rows of each later transaction."""
ROWS_AT_ONCE: Final = 200
"""Rows of a response before it begins to rest."""
ROWS_MAX: Final = 50_000
CURSOR_CHARS_MAX: Final = 128
LIMIT: Final = integer("limit", 10_000, 1, ROWS_MAX, "rows of one response")
AFTER: Final = text("after", "cursor of the last row that arrived", chars_max=CURSOR_CHARS_MAX)
PARAMETERS: Final = (USER, AFTER, LIMIT)

Key = tuple[str | int, ...]
Load = Callable[[Transaction, Address, tuple[Any, ...], int], Awaitable[Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class ExportKind:
    """How rows are read and shown, and the key before the first one: its types are those of a cursor."""

    load: Load
    show: Callable[[Any], Row]
    key: Callable[[Any], Key]
    begin: Key
    columns: tuple[str, ...]

    def parse(self, cursor: str | None) -> Key:
        """Return the key in a cursor, or refuse it."""
        if cursor is None:
            return self.begin
        parts = cursor.split("-")
        if len(parts) != len(self.begin) or not all(p.isascii() and p.isdigit() for p in parts):
            raise MalformedQuery("after", "the cursor of a row of this export")
        wanted = [
            each if isinstance(first, str) else int(each)
            for each, first in zip(parts, self.begin, strict=True)
        ]
        if any(isinstance(each, int) and each >= 1 << 63 for each in wanted):
            raise MalformedQuery("after", "the cursor of a row of this export")
        return tuple(wanted)


@dataclass(frozen=True, slots=True)
class Export:
    """A response: its media type and its parts."""

    media_type: str
    parts: AsyncIterator[bytes]


async def begin_export(context: DataContext, query: Query, file: str) -> Export:
    """Return an export whose first rows have been read, so that a refusal can still be sent."""
    name, _, form = file.partition(".")
    if name not in KINDS or form not in ENCODERS:
        raise UnknownRecord("file")
    kind, wallet = KINDS[name], query.read(USER)
    media_type, encoder_of = ENCODERS[form]
    after, limit = kind.parse(query.read(AFTER)), query.read(LIMIT)
    query.check_known()
    client = client_name.get()
    await context.exports.take(client)
    reading = _Reading(context, kind, wallet, after, limit)
    reading.hold_place(client)
    try:
        encoder = await asyncio.to_thread(encoder_of, kind.columns)  # the first one loads a library
        first = await reading.next_rows()
    except BaseException:
        reading.end()
        raise
    return Export(media_type, _sent(reading, first, encoder))


class _Reading:
    """The parts of one response."""

    def __init__(
        self, context: DataContext, kind: ExportKind, wallet: Address, after: Key, limit: int
    ) -> None:
        self.kind = kind
        self._context, self._wallet, self._after, self._left = context, wallet, after, limit
        self._loop = asyncio.get_running_loop()
        self._until_s = self._loop.time() + context.export_s
        self._worked_s = 0.0
        """The clock of uvloop's loop, which counts whole milliseconds, would not measure it."""
        self._at_once = ROWS_AT_ONCE
        self._read: Sequence[Any] = ()

    def hold_place(self, client: str) -> None:
        """Give the client's place back with the end of the response; one that never begins has no other."""
        release = self._context.exports.release
        self._place = weakref.finalize(self, self._loop.call_soon_threadsafe, release, client)
        self._place.atexit = False

    def end(self) -> None:
        """Give the place back."""
        self._place()

    async def next_rows(self) -> Sequence[Any]:
        """Return the rows of the next part, none at the end of the wallet's rows, of the response or of its time."""
        if self._loop.time() >= self._until_s:
            return ()
        if self._read:
            await asyncio.sleep(0)
        else:
            self._read = await self._read_next()
        part, self._read = self._read[:ROWS_PER_PART], self._read[ROWS_PER_PART:]
        return part

    async def _read_next(self) -> Sequence[Any]:
        """Return rows of the next parts from the database."""
        wanted = min(self._left, ROWS_PER_READ if self._at_once > 0 else ROWS_PER_PART)
        if not wanted:
            return ()
        if self._at_once <= 0:
            await self._context.export_rests.rest(self._worked_s)
        self._worked_s = 0.0
        began_s = time.monotonic()
        async with self._context.database.public_reading() as tx:
            rows = await self.kind.load(tx, self._wallet, self._after, wanted)
        self._left = self._left - len(rows) if len(rows) == wanted else 0
        if rows:
            self._after = self.kind.key(rows[-1])
        self._at_once -= len(rows)
        self._worked_s += time.monotonic() - began_s
        return rows

    def encode(self, rows: Sequence[Any], encoder: RowEncoder) -> bytes:
        """Return what can be sent of rows by now."""
        began_s = time.monotonic()
        encoded = encoder.add(
            [{"cursor": _cursor(self.kind.key(row)), **self.kind.show(row)} for row in rows]
        )
        self._worked_s += time.monotonic() - began_s
        return encoded


async def _sent(
    reading: _Reading, rows: Sequence[Any], encoder: RowEncoder
) -> AsyncIterator[bytes]:
    """Yield encoded rows; rows that cannot be read end the response, and the client resumes."""
    try:
        if begun := encoder.begin():
            yield begun
        while rows:
            if encoded := reading.encode(rows, encoder):
                yield encoded
            try:
                rows = await reading.next_rows()
            except ForetellError:
                break
        if ended := encoder.end():
            yield ended
    finally:
        reading.end()


def _cursor(key: Key) -> str:
    return "-".join(map(str, key))


def _trade(row: Any) -> Row:
    return {
        "timestamp": row.timestamp_s,
        "block": row.block_number,
        "transactionHash": row.tx_hash,
        "orderId": row.order_id,
        "conditionId": row.condition_id,
        "asset": row.token_id,
        "side": row.side,
        "role": "TAKER" if row.is_taker else "MAKER",
        "size": amount(row.size_units),
        "usdcSize": amount(row.cost_units),
        "fee": amount(row.fee_units),
    }


def _position(row: Any) -> Row:
    return {
        "asset": row.token_id,
        "conditionId": row.condition_id,
        "timestamp": row.changed_at_s,
        "size": amount(row.size_units),
        "initialValue": amount(row.cost_units),
        "totalBought": amount(row.bought_units),
        "totalBoughtUsdc": amount(row.spent_units),
        "realizedPnl": amount(row.realized_units),
    }


def _change(row: Any) -> Row:
    return {
        "asset": row.token_id,
        "conditionId": row.condition_id,
        "block": row.block_number,
        "timestamp": row.changed_at_s,
        "size": amount(row.size_units - row.size_units_before),
        "initialValue": amount(row.cost_units - row.cost_units_before),
        "totalBought": amount(row.bought_units - row.bought_units_before),
        "totalBoughtUsdc": amount(row.spent_units - row.spent_units_before),
        "realizedPnl": amount(row.realized_units - row.realized_units_before),
    }


_FIGURES: Final = ("size", "initialValue", "totalBought", "totalBoughtUsdc", "realizedPnl")

KINDS: Final[Mapping[str, ExportKind]] = MappingProxyType(
    {
        "trades": ExportKind(
            load_trades_after,
            _trade,
            lambda row: (row.timestamp_s, row.block_number, row.log_index),
            TRADES_BEGIN,
            (
                *("cursor", "timestamp", "block", "transactionHash", "orderId", "conditionId"),
                *("asset", "side", "role", "size", "usdcSize", "fee"),
            ),
        ),
        "positions": ExportKind(
            load_positions_after,
            _position,
            lambda row: (row.token_id,),
            POSITIONS_BEGIN,
            ("cursor", "asset", "conditionId", "timestamp", *_FIGURES),
        ),
        "ledger": ExportKind(
            load_changes_after,
            _change,
            lambda row: (row.token_id, row.block_number),
            LEDGER_BEGIN,
            ("cursor", "asset", "conditionId", "block", "timestamp", *_FIGURES),
        ),
    }
)
FILE: Final = required_choice(
    "file",
    "what the rows are, and their form; Parquet where the operator has installed it",
    [f"{kind}.{form}" for kind in KINDS for form in ENCODERS],
).in_path()
