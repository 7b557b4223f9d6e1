"""Posting of stored items to the permanent network, oldest first, until it has them all."""

from collections.abc import Iterable
from functools import partial
from typing import Final

import structlog

from foretell.domain.errors.storage import BlobDamaged, StorageUnavailable
from foretell.media.blobs import BlobStore
from foretell.media.bundler import Bundler
from foretell.runtime.worker import PollIntervals, run_worker

PACE: Final = PollIntervals(busy_s=0.0, idle_s=2.0)
FAILURES_MAX: Final = 3
"""Failed posts after which the bundler counts as unavailable, and the others wait too."""

log = structlog.get_logger(__name__)


async def run_posting(blobs: BlobStore, bundler: Bundler) -> None:
    """Post what is not posted yet, until cancelled; failures are repeated after growing pauses."""
    step = partial(post_unsent, blobs, bundler)
    await run_worker("storage", step, PACE, expected=(StorageUnavailable,))


async def post_unsent(blobs: BlobStore, bundler: Bundler) -> bool:
    """Post a part of the items that wait, and return whether more may wait."""
    return await post_items(blobs, bundler, await blobs.unsent()) > 0


async def post_items(blobs: BlobStore, bundler: Bundler, item_ids: Iterable[str]) -> int:
    """Post items and return their number; raise the last failure after trying the others too.

    One that the bundler refuses keeps no other back: the next time it is behind them.
    """
    posted, failures = 0, []
    for item_id in item_ids:
        try:
            await bundler.post(await blobs.load(item_id))
        except (StorageUnavailable, BlobDamaged) as failure:
            log.warning("an item is not posted", item_id=item_id, cause=failure.message)
            failures.append(failure)
            await blobs.postpone(item_id)
            if len(failures) >= FAILURES_MAX:
                break
        else:
            await blobs.note_sent(item_id)
            posted += 1
    if failures:
        raise StorageUnavailable(failures[-1].message)
    return posted
