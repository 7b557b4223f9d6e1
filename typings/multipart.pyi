# What we use of multipart, which carries no types.

from collections.abc import Iterator

class MultipartError(ValueError): ...

class MultipartSegment:
    name: str

class PushMultipartParser:
    def __init__(
        self,
        boundary: str | bytes,
        *,
        max_header_size: int = ...,
        max_header_count: int = ...,
        max_segment_count: float = ...,
    ) -> None: ...
    def close(self) -> None: ...
    def parse(self, chunk: bytes) -> Iterator[MultipartSegment | bytes | bytearray | None]: ...

def parse_options_header(header: str) -> tuple[str, dict[str, str]]: ...
