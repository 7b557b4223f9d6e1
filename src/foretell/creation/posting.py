"""Posting of stored items to the permanent storage, oldest first, until it has them all."""

from collections.abc import Iterable
from functools import partial
from typing import Final

import structlog

from foretell.domain.errors.storage import BlobDamaged, StorageUnavailable
from foretell.media.blobs import BlobStore
from foretell.media.permanent_storage import PermanentStorage
from foretell.runtime.worker import PollIntervals, run_worker

PACE: Final = PollIntervals(busy_s=0.0, idle_s=2.0)
FAILURES_MAX: Final = 3
"""Failed posts after which the service counts as unavailable, and the others wait too."""

log = structlog.get_logger(__name__)


async def run_posting(blobs: BlobStore, storage: PermanentStorage) -> None:
    """Post what is not posted yet, until cancelled; failures are repeated after growing pauses."""
    step = partial(post_unsent, blobs, storage)
    await run_worker("storage", step, PACE, expected=(StorageUnavailable,))


async def post_unsent(blobs: BlobStore, storage: PermanentStorage) -> bool:
    """Post a part of the items that wait, and return whether more may wait."""
    return await post_items(blobs, storage, await blobs.unsent()) > 0


async def post_items(blobs: BlobStore, storage: PermanentStorage, item_ids: Iterable[str]) -> int:
    """Post items and return their number; raise the last failure after trying the others too.

    One that it refuses keeps no other back: the next time it is behind them.
    """
    posted, failures = 0, []
    for item_id in item_ids:
        try:
            await storage.post(await blobs.load(item_id))
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
