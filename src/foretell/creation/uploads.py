"""The multipart body of a preparation: a payload, an envelope, and images.

It is parsed as it arrives and refused as soon as it exceeds a limit: of its size, of a part's size, of
the number of parts, or of time.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header

from foretell.domain.creation.image_fields import OPTION_IMAGES, is_image_field
from foretell.domain.creation.payload import PAYLOAD_BYTES_MAX
from foretell.domain.errors.families import FieldProblem, InvalidFields
from foretell.domain.errors.http import (
    BodyTooLarge,
    UnsupportedMedia,
    UploadsBusy,
    UploadTooLarge,
    UploadTooSlow,
)
from foretell.domain.values.hexadecimal import keccak256
from foretell.edge.codec import AnyRequest, body_chunks
from foretell.runtime.client_bytes import ClientBytes

PAYLOAD_FIELD: Final = "payload"
AUTH_FIELD: Final = "auth"

UPLOAD_BYTES_MAX: Final = 16 * 1024 * 1024
UPLOADS_BYTES_MAX: Final = 128 * 1024 * 1024
UPLOADS_BYTES_BY_CLIENT_MAX: Final = 32 * 1024 * 1024
UPLOAD_DEADLINE_S: Final = 30.0
AUTH_BYTES_MAX: Final = 8 * 1024
OTHER_BYTES_MAX: Final = 8 * 1024
PARTS_MAX: Final = 64
PART_HEADERS_MAX: Final = 8
PART_HEADER_BYTES_MAX: Final = 1024
NAME_CHARS_MAX: Final = 128


class Upload(NamedTuple):
    """The parts of an upload; images in their order, with the names of their fields."""

    payload: bytes
    auth: bytes
    images: tuple[tuple[str, bytes], ...]

    @property
    def images_hash(self) -> str:
        """The hash of the images as they were sent, with their fields; the order of fields is free."""
        images = sorted(self.images, key=lambda image: image[0])
        listed = "".join(f"{name}\n{keccak256(content).hex()}\n" for name, content in images)
        return keccak256(listed.encode()).hex()

    @property
    def content_hash(self) -> bytes:
        """The hash of all parts as they were sent; the boundary between them is free."""
        parts = (self.payload, self.auth, self.images_hash.encode())
        return keccak256(b"".join(keccak256(part) for part in parts))


class UploadBudget:
    """The memory limit of all concurrent uploads together, and of those of one client."""

    def __init__(
        self,
        bytes_max: int = UPLOADS_BYTES_MAX,
        client_bytes_max: int = UPLOADS_BYTES_BY_CLIENT_MAX,
    ) -> None:
        self._bytes = ClientBytes(bytes_max, client_bytes_max)

    @property
    def clients(self) -> int:
        """The number of clients whose uploads are arriving."""
        return len(self._bytes)

    @contextlib.contextmanager
    def share(self, client: str) -> Iterator["UploadShare"]:
        """Yield the share of one upload of a client, which grows with it; return it to the budget at the end."""
        share = UploadShare(self, client)
        try:
            yield share
        finally:
            self._bytes.add(client, -share.taken_bytes)

    def take(self, client: str, count: int) -> None:
        """Take bytes from the budget, or refuse when this client's other uploads, or those of all, use it."""
        bound = self._bytes.exceeded_by(client, count)
        if bound is not None:
            raise UploadsBusy(bound)
        self._bytes.add(client, count)


class UploadShare:
    """The part of the budget that one upload uses."""

    def __init__(self, budget: UploadBudget, client: str) -> None:
        self._budget = budget
        self._client = client
        self.taken_bytes = 0

    def grow(self, count: int) -> None:
        """Take more bytes, within the limit of one upload."""
        if self.taken_bytes + count > UPLOAD_BYTES_MAX:
            raise BodyTooLarge(UPLOAD_BYTES_MAX)
        self._budget.take(self._client, count)
        self.taken_bytes += count


async def read_upload(
    request: AnyRequest,
    image_bytes_max: int,
    share: UploadShare,
    deadline_s: float = UPLOAD_DEADLINE_S,
) -> Upload:
    """Return the parts of the body, or refuse it."""
    form = _Form(_boundary(request.headers.get("content-type", "")), image_bytes_max)
    try:
        async with asyncio.timeout(deadline_s):
            async for chunk in body_chunks(request):
                share.grow(len(chunk))
                form.feed(chunk)
    except TimeoutError as error:
        raise UploadTooSlow(deadline_s) from error
    return form.upload()


def _boundary(content_type: str) -> str:
    kind, options = parse_options_header(content_type)
    if kind != "multipart/form-data" or not options.get("boundary"):
        raise UnsupportedMedia("body", "multipart/form-data with a boundary")
    return options["boundary"]


class _Form:
    """The parts that have arrived, each within the size limit of its kind."""

    def __init__(self, boundary: str, image_bytes_max: int) -> None:
        self._image_bytes_max = image_bytes_max
        self._parts: list[tuple[str, bytearray]] = []
        self._parser = PushMultipartParser(
            boundary,
            max_header_size=PART_HEADER_BYTES_MAX,
            max_header_count=PART_HEADERS_MAX,
            max_segment_count=PARTS_MAX + 1,
        )

    def feed(self, chunk: bytes) -> None:
        """Parse the next chunk of the body."""
        if not chunk:
            return
        try:
            for parsed in self._parser.parse(chunk):
                if isinstance(parsed, MultipartSegment):
                    filename = parsed.filename  # type: ignore[attr-defined]  # the stubs lack it
                    self._open(parsed.name, is_file=filename is not None)
                elif parsed is not None:
                    self._append(parsed)
        except MultipartError as error:
            raise _malformed("a boundary or the headers of a part are malformed") from error

    def _open(self, name: str, *, is_file: bool) -> None:
        if len(self._parts) >= PARTS_MAX:
            raise _malformed(f"it has more than {PARTS_MAX} parts")
        if len(name) > NAME_CHARS_MAX:
            raise _malformed(f"a part's name has more than {NAME_CHARS_MAX} characters")
        if is_file and not _is_known(name):
            raise InvalidFields([FieldProblem(name, "is no field for an image")])
        is_repeatable = name in OPTION_IMAGES or not _is_known(name)
        if not is_repeatable and name in (known for known, _ in self._parts):
            raise InvalidFields([FieldProblem(name, "must be given exactly once")])
        self._parts.append((name, bytearray()))

    def _append(self, content: bytes | bytearray) -> None:
        name, part = self._parts[-1]
        part += content
        bytes_max = self._bytes_max(name)
        if len(part) > bytes_max:
            raise UploadTooLarge(name, bytes_max)

    def _bytes_max(self, name: str) -> int:
        by_name: Mapping[str, int] = {PAYLOAD_FIELD: PAYLOAD_BYTES_MAX, AUTH_FIELD: AUTH_BYTES_MAX}
        return self._image_bytes_max if is_image_field(name) else by_name.get(name, OTHER_BYTES_MAX)

    def upload(self) -> Upload:
        """Return the upload after its last chunk, or refuse an incomplete one."""
        try:
            self._parser.close()
        except MultipartError as error:
            raise _malformed("the last boundary is missing") from error
        known = {name: bytes(part) for name, part in self._parts}
        missing = [name for name in (PAYLOAD_FIELD, AUTH_FIELD) if not known.get(name)]
        if missing:
            raise InvalidFields([FieldProblem(name, "is required") for name in missing])
        images = tuple(
            (name, bytes(part)) for name, part in self._parts if part and is_image_field(name)
        )
        return Upload(known[PAYLOAD_FIELD], known[AUTH_FIELD], images)


def _is_known(name: str) -> bool:
    return name in {PAYLOAD_FIELD, AUTH_FIELD} or is_image_field(name)


def _malformed(why: str) -> InvalidFields:
    return InvalidFields([FieldProblem("body", f"must be multipart/form-data: {why}")])
