"""Images that are decoded for clients in turn: a small file may cost a second."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.creation.rig import CreationRig, CreatorClient, error_of

from foretell.creation.context import DECODINGS_BOUNDS
from foretell.media.images import CHILDREN_MAX

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def decoding(rig: CreationRig, client: str, count: int) -> AsyncIterator[None]:
    """Have a client's images decoded all the time, so many of them waiting or running."""
    may_end = asyncio.Event()

    async def decode() -> None:
        await rig.context.decodings.take(client)
        await may_end.wait()
        rig.context.decodings.release(client)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(count):
            tasks.create_task(decode())
        await asyncio.sleep(0)
        yield
        may_end.set()


def client_of(rig: CreationRig) -> str:
    """Return the address that requests of the rig come from."""
    transport = rig.http._transport
    return str(transport.client[0])  # type: ignore[attr-defined]  # of an application in this process


async def test_guard_images_of_a_stranger_delay_no_creator(creator: CreatorClient) -> None:
    """A finding: small files of one stranger, a second of work each, had all others wait for minutes."""
    rig = creator.rig
    assert CHILDREN_MAX > 1
    async with decoding(rig, "a stranger", 1 + DECODINGS_BOUNDS.per_client), asyncio.timeout(60):
        request_id = await creator.prepare()
    assert (await creator.record(request_id))["status"] == "prepare_running"


async def test_guard_an_upload_that_finds_too_many_images_may_be_sent_again(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    async with decoding(rig, client_of(rig), 1 + DECODINGS_BOUNDS.per_client):
        answer = await creator.send(raw, creator.sign(challenge))
    assert error_of(answer) == (503, "images_busy")
    assert int(answer.headers["retry-after"]) > 0
    again = await creator.send(raw, creator.sign(challenge))
    assert again.status_code == 200, again.text
