"""The part of pyarrow that the tests use."""

from typing import Any

class DataType: ...

class Field:
    name: str
    type: DataType

class Schema:
    def __iter__(self) -> Any: ...

class ChunkedArray:
    def to_pylist(self) -> list[Any]: ...

class Table:
    num_rows: int
    def column(self, name: str) -> ChunkedArray: ...
    def to_pylist(self) -> list[dict[str, Any]]: ...
