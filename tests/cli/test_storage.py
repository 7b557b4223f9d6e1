"""`foretell storage push`."""

import asyncio
import contextlib
import io
import threading
from collections.abc import Iterator
from queue import Queue

import pytest
from rich.console import Console
from tests.rigs.bundlers import RecordingBundler, a_bundler
from tests.rigs.values import a_key

from foretell.cli.storage import run_push
from foretell.domain.creation.data_items import ItemTag, sign_item
from foretell.domain.errors.command import MissingSetting
from foretell.media.blobs import BlobStore
from foretell.settings import Settings

WITHIN_S = 60.0
ITEM = sign_item(b"a document", [ItemTag("Content-Type", "text/plain")], a_key("storage"))
OTHER = sign_item(b"another document", [ItemTag("Content-Type", "text/plain")], a_key("storage"))


@contextlib.contextmanager
def serving_in_a_thread() -> Iterator[RecordingBundler]:
    """Serve a bundler beside the command, which runs an event loop of its own."""
    ready: Queue[RecordingBundler] = Queue()
    stopping = threading.Event()

    async def serve() -> None:
        async with a_bundler() as bundler:
            ready.put(bundler)
            await asyncio.to_thread(stopping.wait)

    server = threading.Thread(target=asyncio.run, args=(serve(),))
    server.start()
    try:
        yield ready.get(timeout=WITHIN_S)
    finally:
        stopping.set()
        server.join(WITHIN_S)


def push(settings: Settings) -> str:
    console = Console(file=io.StringIO(), width=100)
    run_push(settings, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().strip()


def test_every_item_that_was_never_posted_is_posted(settings: Settings) -> None:
    asyncio.run(BlobStore(settings.data / "blobs").store(ITEM))
    with serving_in_a_thread() as bundler:
        named = settings.model_copy(update={"storage_upload_url": bundler.url})
        assert push(named) == "1 items posted"
        assert push(named) == "0 items posted"
    assert bundler.item_by_id == {ITEM.item_id: ITEM}


def test_a_damaged_item_is_named_and_the_command_fails(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    blobs = BlobStore(settings.data / "blobs")
    asyncio.run(blobs.store(ITEM))
    asyncio.run(blobs.store(OTHER))
    blobs._path(OTHER.item_id).write_bytes(OTHER.raw[:-1])
    console = Console(file=io.StringIO(), width=100)
    with serving_in_a_thread() as bundler, pytest.raises(SystemExit, match="1"):
        run_push(settings.model_copy(update={"storage_upload_url": bundler.url}), console)
    assert bundler.item_by_id == {ITEM.item_id: ITEM}
    assert isinstance(console.file, io.StringIO)
    [named, posted] = console.file.getvalue().splitlines()
    assert named.startswith(f"{blobs._path(OTHER.item_id).name}: ")
    assert posted == "1 items posted"
    assert "1 items could not be posted" in capsys.readouterr().err


def test_a_push_needs_a_bundler(settings: Settings) -> None:
    with pytest.raises(MissingSetting, match=r"(?i)storage_upload_url"):
        push(settings)
