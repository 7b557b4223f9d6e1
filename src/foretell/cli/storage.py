"""`foretell storage push`: the items of market creation that the permanent network does not have yet."""

import uvloop
from rich.console import Console

from foretell.creation.posting import post_items
from foretell.domain.errors.command import MissingSetting
from foretell.media.blobs import BlobStore
from foretell.media.storages import open_storage
from foretell.settings import Settings


def run_push(settings: Settings, console: Console) -> None:
    """Post every item that was not posted, and print their number; the worker may run meanwhile."""
    url = settings.storage_upload_url
    if url is None:
        raise MissingSetting(
            "storage_upload_url", "foretell storage push posts to a bundler or to an IPFS node"
        )
    console.print(f"{uvloop.run(_push(settings, url))} items posted")


async def _push(settings: Settings, url: str) -> int:
    storage = settings.storage
    blobs = BlobStore(settings.data / "blobs", storage)
    async with open_storage(storage, url, settings.storage_bearer) as client:
        return await post_items(blobs, client, await blobs.never_sent())
