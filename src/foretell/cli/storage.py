"""`foretell storage push`: the items of market creation that the permanent network does not have yet."""

import uvloop
from rich.console import Console

from foretell.cli.failure import fail
from foretell.creation.posting import PushCounts, push_items
from foretell.domain.errors.command import MissingSetting
from foretell.media.blobs import BlobStore
from foretell.media.storages import open_storage
from foretell.settings import Settings


def run_push(settings: Settings, console: Console) -> None:
    """Post every item that was not posted, and print their number; the worker may run meanwhile.

    Prints a line for each item that cannot be posted, and then fails.
    """
    url = settings.storage_upload_url
    if url is None:
        raise MissingSetting(
            "storage_upload_url", "foretell storage push posts to a bundler or to an IPFS node"
        )
    counts = uvloop.run(_push(settings, url, console))
    console.print(f"{counts.posted} items posted")
    if counts.failed:
        fail(f"{counts.failed} items could not be posted; the lines above name them")


async def _push(settings: Settings, url: str, console: Console) -> PushCounts:
    def report(failure: str) -> None:
        console.print(failure, markup=False, highlight=False, soft_wrap=True)

    storage = settings.storage
    blobs = BlobStore(settings.data / "blobs", storage)
    async with open_storage(storage, url, settings.storage_bearer) as client:
        return await push_items(blobs, client, report)
