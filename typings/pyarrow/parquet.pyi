"""The part of pyarrow's Parquet that the tests use."""

from typing import BinaryIO

from pyarrow import Schema, Table

class ParquetFile:
    num_row_groups: int
    schema_arrow: Schema
    def __init__(self, source: BinaryIO) -> None: ...
    def read(self) -> Table: ...

def read_table(source: BinaryIO) -> Table: ...
