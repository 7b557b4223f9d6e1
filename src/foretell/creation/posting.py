"""Posting of stored items to the permanent storage, oldest first, until it has them all."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

import structlog

from foretell.domain.errors.storage import BlobDamaged, BlobNotFound, StorageUnavailable
from foretell.media.blobs import BlobStore
from foretell.media.permanent_storage import PermanentStorage
from foretell.runtime.worker import PollIntervals, run_worker

PACE: Final = PollIntervals(busy_s=0.0, idle_s=2.0)
FAILURES_MAX: Final = 3
"""Failed posts after which the service counts as unavailable, and the others wait too."""


class PushCounts(NamedTuple):
    """The numbers of items that a push posted, and that it could not."""

    posted: int
    failed: int


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

    One that it refuses, or that is damaged or lost here, keeps no other back: the next time it is behind them.
    """
    posted, refused, failures = 0, 0, []
    for item_id in item_ids:
        try:
            await storage.post(await blobs.load(item_id))
        except (StorageUnavailable, BlobDamaged, BlobNotFound) as failure:
            log.warning("an item is not posted", item_id=item_id, cause=failure.message)
            failures.append(failure)
            await blobs.postpone(item_id)
            refused += isinstance(failure, StorageUnavailable)
            if refused >= FAILURES_MAX:
                break
        else:
            await blobs.note_sent(item_id)
            posted += 1
    if failures:
        raise StorageUnavailable(failures[-1].message)
    return posted


async def push_items(
    blobs: BlobStore, storage: PermanentStorage, report: Callable[[str], None]
) -> PushCounts:
    """Post every stored item without a note, one in memory at a time; report each that fails.

    A damaged item is passed over. The push ends when FAILURES_MAX posts in a row fail, because the
    service is then unavailable.
    """
    posted = failed = failures_in_a_row = 0
    async for name in blobs.never_sent():
        try:
            item_id = await blobs.id_in_file(name)
            if item_id is None:
                continue
            await storage.post(await blobs.load(item_id))
        except (BlobDamaged, BlobNotFound) as failure:
            report(f"{name}: {failure.message}")
            failed += 1
        except StorageUnavailable as failure:
            report(f"{name}: {failure.message}")
            failed += 1
            failures_in_a_row += 1
            if failures_in_a_row >= FAILURES_MAX:
                break
        else:
            await blobs.note_sent(item_id)
            posted += 1
            failures_in_a_row = 0
    return PushCounts(posted, failed)
