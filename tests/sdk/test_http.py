import asyncio

import pytest
from tests.rigs.ports import free_port
from tests.rigs.scripted_api import Desk, a_client

from foretell.domain.errors.command import ApiRefused, ApiUnreachable, NotInTime
from foretell.sdk import http
from foretell.sdk.http import HttpClient, wait_for

pytestmark = pytest.mark.anyio


async def test_a_body_arrives_as_the_very_bytes_that_were_signed() -> None:
    desk, body = Desk(), b'{ "a" : 1.0 }'
    desk.say("POST /order", {"success": True})
    async with a_client(desk) as client:
        assert await client.send("POST", "/order", body, {"signature": "x"}) == {"success": True}
    (seen,) = desk.seen
    assert (seen.body, seen.headers["signature"]) == (body, "x")
    assert seen.headers["content-type"] == "application/json"


async def test_a_query_is_sent_as_it_is_named() -> None:
    desk = Desk()
    desk.say("GET /book", [])
    async with a_client(desk) as client:
        assert await client.get("/book", token_id="7", limit=2) == []
    assert desk.seen[0].query == "token_id=7&limit=2"


async def test_a_form_carries_its_files() -> None:
    desk = Desk()
    desk.say("POST /prepare", {})
    async with a_client(desk) as client:
        await client.upload(
            "/prepare", {"payload": "{}"}, {"image": ("a.png", b"PNG", "image/png")}
        )
    (seen,) = desk.seen
    assert seen.headers["content-type"].startswith("multipart/form-data")
    assert b'filename="a.png"' in seen.body


@pytest.mark.parametrize("status", [201, 302, 400, 500])
async def test_what_is_not_a_200_is_refused_with_what_was_said(status: int) -> None:
    desk = Desk()
    desk.say("GET /x", b"why " + b"x" * 5000, status=status)
    async with a_client(desk) as client:
        with pytest.raises(ApiRefused, match=f"^GET /x answered {status}: why x") as refused:
            await client.get("/x")
    assert refused.value.details["status"] == status
    assert len(refused.value.message) < 2100


@pytest.mark.parametrize("status", [425, 503])
@pytest.mark.parametrize(("restarts", "tries"), [(1, 2), (99, http.TRIES_MAX)])
async def test_what_cannot_be_done_now_is_asked_for_again_when_it_says_so(
    status: int, restarts: int, tries: int
) -> None:
    desk = Desk()
    for _ in range(restarts):
        desk.say("GET /x", b"restarting", status=status)
    desk.say("GET /x", {"at": "last"})
    async with a_client(desk) as client:
        if tries < http.TRIES_MAX:
            assert await client.get("/x") == {"at": "last"}
        else:
            with pytest.raises(ApiRefused, match=f"answered {status}"):
                await client.get("/x")
    assert len(desk.seen) == tries


async def test_an_api_that_is_not_there_is_told_by_its_address() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with HttpClient(url) as client:
        with pytest.raises(ApiUnreachable, match=rf"^{url} does not answer \(ConnectError\)"):
            await client.get("/")


async def test_no_proxy_stands_between_a_command_and_its_installation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    desk = Desk()
    desk.say("GET /", b"OK")
    async with a_client(desk) as client:
        assert await client.get_text("/") == "OK"


async def test_a_wait_looks_again_until_it_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "POLL_S", 0.001)
    found = iter([None, None, 0])

    async def run_once() -> int | None:
        return next(found)

    assert await wait_for("a number", run_once) == 0
    assert next(found, "nothing left") == "nothing left"


async def test_a_wait_ends_and_says_what_it_waited_for() -> None:
    async def run_once() -> None:
        await asyncio.sleep(0)

    with pytest.raises(NotInTime, match=r"^waited 0\.05 s for a miracle$"):
        await wait_for("a miracle", run_once, deadline_s=0.05)
