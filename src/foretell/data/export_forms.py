"""Encodings of exported rows: CSV, lines of JSON, and Parquet where pyarrow is installed.

An encoder takes rows as they are read and returns bytes as soon as it has some. A CSV begins with its columns. A file
in Parquet ends with its index, so one that was cut off on its way cannot be read, and is asked for again.
"""

import csv
import importlib
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from typing_extensions import override

from foretell.domain.errors.http import NotServed
from foretell.edge.codec import encode_json
from foretell.edge.rendering import decimal_string

Row = Mapping[str, str | int | Decimal]

MISSING: Final = "exports in Parquet, as it lacks pyarrow; the operator installs it by make parquet"
ROWS_PER_GROUP: Final = 2_000
"""Rows of a group in a Parquet file: an encoder holds no more than that."""
AMOUNT_DIGITS: Final = 38
AMOUNT_DECIMALS: Final = 6
INTEGERS: Final = frozenset({"block", "timestamp"})
TEXTS: Final = frozenset(
    {
        *("cursor", "transactionHash", "orderId", "conditionId", "asset"),
        *("side", "role"),
    }
)
"""Columns of text; all others but `INTEGERS` are amounts."""


class RowEncoder(ABC):
    """Rows with these columns, encoded as they come."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = columns

    def begin(self) -> bytes:
        """Return what stands before the first row."""
        return b""

    @abstractmethod
    def add(self, rows: Sequence[Row]) -> bytes:
        """Take rows, and return what can be sent by now."""

    def end(self) -> bytes:
        """Return what is left, and what stands after the last row."""
        return b""


class CsvEncoder(RowEncoder):
    """A line for the columns and one for each row; amounts are decimals without an exponent."""

    @override
    def begin(self) -> bytes:
        return _csv([self.columns])

    @override
    def add(self, rows: Sequence[Row]) -> bytes:
        return _csv(
            [
                [
                    decimal_string(each) if isinstance(each, Decimal) else each
                    for each in row.values()
                ]
                for row in rows
            ]
        )


class JsonLinesEncoder(RowEncoder):
    """An object of JSON in each line."""

    @override
    def add(self, rows: Sequence[Row]) -> bytes:
        return b"".join(encode_json(row) + b"\n" for row in rows)


class ParquetEncoder(RowEncoder):
    """A file in Parquet: texts, integers of 64 bits, and decimals with six places.

    Raises NotServed where pyarrow is not installed.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        super().__init__(columns)
        try:
            self._arrow: Any = importlib.import_module("pyarrow")
            parquet: Any = importlib.import_module("pyarrow.parquet")
        except ImportError as error:
            raise NotServed(MISSING) from error
        self._schema = self._arrow.schema([(name, self._type(name)) for name in columns])
        self._target = _Target()
        self._writer = parquet.ParquetWriter(self._target, self._schema)
        self._rows: list[Row] = []

    def _type(self, column: str) -> Any:
        if column in INTEGERS:
            return self._arrow.int64()
        if column in TEXTS:
            return self._arrow.string()
        return self._arrow.decimal128(AMOUNT_DIGITS, AMOUNT_DECIMALS)

    @override
    def add(self, rows: Sequence[Row]) -> bytes:
        self._rows += rows
        if len(self._rows) >= ROWS_PER_GROUP:
            self._write_group()
        return self._target.take()

    @override
    def end(self) -> bytes:
        if self._rows:
            self._write_group()
        self._writer.close()
        return self._target.take()

    def _write_group(self) -> None:
        values = [[row[name] for row in self._rows] for name in self.columns]
        arrays = [
            self._arrow.array(each, type=field.type)
            for each, field in zip(values, self._schema, strict=True)
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []


class _Target(io.RawIOBase):
    """A file that is taken away as it is written; places in it count from its beginning."""

    def __init__(self) -> None:
        super().__init__()
        self._written = bytearray()
        self._taken_bytes = 0

    @override
    def writable(self) -> bool:
        return True

    @override
    def write(self, part: Any) -> int:
        self._written += part
        return len(part)

    @override
    def tell(self) -> int:
        return self._taken_bytes + len(self._written)

    def take(self) -> bytes:
        """Return what was written since the last time."""
        taken = bytes(self._written)
        self._taken_bytes += len(taken)
        self._written.clear()
        return taken


def _csv(rows: Sequence[Sequence[object]]) -> bytes:
    target = io.StringIO()
    csv.writer(target, lineterminator="\r\n").writerows(rows)
    return target.getvalue().encode()


ENCODERS: Final[Mapping[str, tuple[str, Callable[[Sequence[str]], RowEncoder]]]] = MappingProxyType(
    {
        "csv": ("text/csv", CsvEncoder),
        "jsonl": ("application/jsonl", JsonLinesEncoder),
        "parquet": ("application/vnd.apache.parquet", ParquetEncoder),
    }
)
"""The media type and the encoder of each form; the framework names the charset of a text."""
