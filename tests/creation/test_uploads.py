import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.creation.rig import PICTURE, CreationRig, CreatorClient, details_of, error_of

from foretell.creation.uploads import (
    AUTH_BYTES_MAX,
    OTHER_BYTES_MAX,
    PART_HEADER_BYTES_MAX,
    PARTS_MAX,
    UPLOAD_BYTES_MAX,
    Upload,
    UploadBudget,
    read_upload,
)
from foretell.domain.creation.payload import PAYLOAD_BYTES_MAX
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import UploadTooSlow
from foretell.edge.codec import AnyRequest

pytestmark = pytest.mark.anyio

BOUNDARY = "boundary"
KIND = f"multipart/form-data; boundary={BOUNDARY}"
IMAGE_MAX = 2_097_152
CLIENT = "127.0.0.1"
"""The address that requests of the rig come from."""

Part = tuple[str, bytes]
BASIC: tuple[Part, ...] = (("payload", b"{}"), ("auth", b"{}"), ("eventImage", PICTURE))


def a_body(parts: Sequence[Part], end: str = "--") -> bytes:
    """Return a multipart body, without a library."""
    written = b"".join(
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode()
        + content
        + b"\r\n"
        for name, content in parts
    )
    return written + f"--{BOUNDARY}{end}\r\n".encode()


async def post(rig: CreationRig, body: bytes, kind: str = KIND) -> httpx.Response:
    return await rig.http.post("/prepare", content=body, headers={"content-type": kind})


class FakeStream:
    """A request, as far as an upload is read from it."""

    def __init__(self, chunks: Sequence[bytes], kind: str = KIND, pause_s: float = 0.0) -> None:
        self.headers = {"content-type": kind}
        self._chunks = chunks
        self._pause_s = pause_s

    async def stream(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            await asyncio.sleep(self._pause_s)
            yield chunk


async def read(chunks: Sequence[bytes], **options: float) -> Upload:
    stream = FakeStream(chunks, pause_s=options.pop("pause_s", 0.0))
    request: AnyRequest = stream  # type: ignore[assignment]  # what is used of a request
    with UploadBudget().share("client") as share:
        return await read_upload(request, IMAGE_MAX, share, **options)


async def test_the_parts_come_out_as_they_went_in_however_they_arrive() -> None:
    parts = (
        ("payload", b'{"a": "\r\n--boundar"}'),
        ("auth", b"{}"),
        ("other", b"ignored"),
        ("optionImages", b"1"),
        ("eventImage", PICTURE),
        ("optionImages", b"2"),
        ("optionImages[]", b""),
    )
    body = a_body(parts)
    wanted = Upload(
        parts[0][1],
        b"{}",
        (("optionImages", b"1"), ("eventImage", PICTURE), ("optionImages", b"2")),
    )

    assert await read([body]) == wanted
    assert await read([body[at : at + 1] for at in range(len(body))]) == wanted
    assert await read([b"", body, b"", b"\r\n"]) == wanted


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "application/json",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/mixed; boundary=boundary",
        "application/x-www-form-urlencoded",
    ],
)
@pytest.mark.spec(65)
async def test_only_multipart_with_a_boundary_is_accepted(rig: CreationRig, kind: str) -> None:
    assert error_of(await post(rig, a_body(BASIC), kind)) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"junk",
        a_body(BASIC, end=""),
        a_body(BASIC)[:-20],
        a_body(BASIC).replace(b"form-data", b"attachment"),
        a_body(BASIC).replace(b"Content-Disposition", b"X"),
        a_body(BASIC).replace(b"\r\n\r\n", b"\r\nX: " + b"y" * PART_HEADER_BYTES_MAX + b"\r\n\r\n"),
        a_body(BASIC).replace(b"\r\n\r\n", b"\r\nX: y" * 10 + b"\r\n\r\n"),
        a_body([("x" * 200, b""), *BASIC]),
        a_body([("other", b"")] * (PARTS_MAX + 1)),
        a_body([("other", b"")] * 100_000),
    ],
    ids=[
        "nothing",
        "junk",
        "no last boundary",
        "cut",
        "attachments",
        "no disposition",
        "a long header",
        "many headers",
        "a long name",
        "too many parts",
        "far too many parts",
    ],
)
async def test_a_body_that_is_no_multipart_form_is_refused(rig: CreationRig, body: bytes) -> None:
    answer = await post(rig, body)

    assert error_of(answer) == (400, "validation_error")
    assert details_of(answer)[0][0] == "body"


@pytest.mark.deviation(25)
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (a_body([("other", b"")] * (PARTS_MAX + 1)), f"it has more than {PARTS_MAX} parts"),
        (
            a_body(BASIC).replace(b"Content-Disposition", b"X"),
            "a boundary or the headers of a part are malformed",
        ),
    ],
)
async def test_a_parser_s_own_words_are_not_sent(
    rig: CreationRig, body: bytes, message: str
) -> None:
    """A finding: `Maximum segment count exceeded` is no word of this API."""
    answer = await post(rig, body)

    assert details_of(answer) == [("body", f"must be multipart/form-data: {message}")]


@pytest.mark.case("F-02")
@pytest.mark.parametrize(
    "name", ["payload", "auth", "eventImage", "optionImage:a", "teamLogo:home"]
)
async def test_a_part_that_is_there_twice_is_refused(rig: CreationRig, name: str) -> None:
    answer = await post(rig, a_body([*BASIC, (name, b"x"), (name, b"x")]))

    assert error_of(answer) == (400, "validation_error")
    assert details_of(answer) == [(name, "must be given exactly once")]


@pytest.mark.deviation(13)
@pytest.mark.parametrize("name", ["foo", "eventImages", "optionimage:a", ""])
async def test_an_image_that_nothing_takes_is_refused(rig: CreationRig, name: str) -> None:
    files = [(name or "image", ("picture.png", PICTURE, "image/png"))]
    texts = {"payload": "{}", "auth": "{}", "note": "a text that nothing reads"}

    answer = await rig.http.post("/prepare", data=texts, files=files)

    assert error_of(answer) == (400, "validation_error")
    assert details_of(answer) == [(name or "image", "is no field for an image")]


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ({"payload"}, ["payload"]),
        ({"auth"}, ["auth"]),
        ({"payload", "auth"}, ["payload", "auth"]),
    ],
)
@pytest.mark.spec(67)
async def test_a_missing_part_is_named(
    rig: CreationRig, missing: set[str], named: list[str]
) -> None:
    absent = await post(rig, a_body([part for part in BASIC if part[0] not in missing]))
    empty = await post(
        rig, a_body([(name, b"" if name in missing else content) for name, content in BASIC])
    )

    assert [field for field, _ in details_of(absent)] == named
    assert [field for field, _ in details_of(empty)] == named


@pytest.mark.case("F-02")
@pytest.mark.parametrize(
    ("name", "bytes_max"),
    [
        ("payload", PAYLOAD_BYTES_MAX),
        ("auth", AUTH_BYTES_MAX),
        ("eventImage", IMAGE_MAX),
        ("optionImage:a", IMAGE_MAX),
        ("unknown", OTHER_BYTES_MAX),
    ],
)
async def test_each_part_has_a_size_limit(rig: CreationRig, name: str, bytes_max: int) -> None:
    parts = [part for part in BASIC if part[0] != name]

    within = await post(rig, a_body([*parts, (name, b"x" * bytes_max)]))
    beyond = await post(rig, a_body([*parts, (name, b"x" * (bytes_max + 1))]))

    assert error_of(within)[0] == 400
    assert error_of(beyond) == (413, "payload_too_large")
    assert details_of(beyond)[0][0] == name


@pytest.mark.case("F-02")
async def test_the_whole_body_has_a_size_limit(rig: CreationRig) -> None:
    images = [(f"optionImage:{n}", b"x" * IMAGE_MAX) for n in range(UPLOAD_BYTES_MAX // IMAGE_MAX)]

    answer = await post(rig, a_body([*BASIC, *images]))

    assert error_of(answer) == (413, "payload_too_large")


async def test_all_uploads_share_a_memory_limit_and_release_what_they_took(
    rig: CreationRig,
) -> None:
    body = a_body(BASIC)
    rig.change(uploads=UploadBudget(bytes_max=len(body) + 10))

    with rig.context.uploads.share("another client") as other:
        other.grow(11)
        busy = await post(rig, body)
    free = [await post(rig, body) for _ in range(3)]

    assert error_of(busy) == (503, "uploads_busy")
    assert {error_of(answer) for answer in free} == {(400, "validation_error")}


async def test_attack_g9_a_client_that_fills_its_part_refuses_no_upload_of_another(
    rig: CreationRig,
) -> None:
    """Eight connections of one address once refused every creation of a market for 30 s."""
    body = a_body(BASIC)
    rig.change(uploads=UploadBudget(bytes_max=10 * len(body), client_bytes_max=2 * len(body)))

    with rig.context.uploads.share("another client") as other:
        other.grow(2 * len(body))
        passed = await post(rig, body)
    with rig.context.uploads.share(CLIENT) as other:
        other.grow(2 * len(body))
        busy = await post(rig, body)
    free = await post(rig, body)

    assert error_of(passed) == error_of(free) == (400, "validation_error")
    assert error_of(busy) == (503, "uploads_busy")


def test_nothing_is_kept_of_uploads_that_ended() -> None:
    budget = UploadBudget(bytes_max=10, client_bytes_max=10)
    for number in range(100):
        with budget.share(f"client {number}") as share:
            share.grow(10)
    assert budget.clients == 0


@pytest.mark.case("F-02")
async def test_a_body_that_arrives_too_slowly_is_refused() -> None:
    body = a_body(BASIC)

    with pytest.raises(UploadTooSlow):
        await read([body[:10], body[10:]], pause_s=0.05, deadline_s=0.06)


async def test_a_large_form_is_read_fast() -> None:
    image = b"\r\n--boundar" * (IMAGE_MAX // 11)
    body = a_body([*BASIC[:2], *((f"optionImage:{n}", image) for n in range(6))])
    started_at_s = time.thread_time()

    await read([body[at : at + 65536] for at in range(0, len(body), 65536)])

    assert time.thread_time() - started_at_s < 2.0


@pytest.mark.case("F-02")
@pytest.mark.anyio
@given(
    st.lists(st.sampled_from([b"--boundary", b"\r\n", b"--", b"x", b'name="payload"']), max_size=60)
)
async def test_any_other_body_is_refused(pieces: list[bytes]) -> None:
    with pytest.raises(ForetellError):
        await read([b"".join(pieces)])


@pytest.mark.anyio
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300), st.binary(max_size=100))
async def test_any_other_payload_or_envelope_is_refused(
    creator: CreatorClient, payload: bytes, auth: bytes
) -> None:
    answer = await post(
        creator.rig, a_body([("payload", payload), ("auth", auth), ("eventImage", PICTURE)])
    )

    assert error_of(answer)[0] in {400, 404}


async def test_a_payload_may_come_as_a_file(creator: CreatorClient) -> None:
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    envelope = json.dumps(creator.sign(challenge)).encode()

    answer = await creator.rig.http.post(
        "/prepare",
        files={
            "payload": ("payload.json", raw, "application/json"),
            "auth": ("auth.json", envelope, "application/json"),
            "eventImage": ("cover.png", PICTURE, "text/plain"),
        },
    )

    assert answer.status_code == 200


async def test_attack_m3_an_upload_that_its_client_cuts_off_is_no_bug_of_the_server(
    rig: CreationRig,
) -> None:
    arriving = [
        {"type": "http.request", "body": b"--boundary", "more_body": True},
        {"type": "http.disconnect"},
    ]
    statuses: list[int] = []

    async def receive() -> Any:
        return arriving.pop(0)

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/prepare",
        "raw_path": b"/prepare",
        "query_string": b"",
        "headers": [(b"content-type", KIND.encode())],
    }
    await rig.app(scope, receive, send)  # type: ignore[arg-type]  # scopes typed closer

    assert statuses == [400]
