"""Check and normalize the images that creators upload.

Size and header are checked here; only then a child process with limits decodes the file. At most
`CHILDREN_MAX` children run at once, and one that exceeds its deadline is killed, which does not blame the picture.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from typing import Final

from foretell.domain.errors.families import FieldProblem, InvalidFields
from foretell.domain.errors.http import UploadTooLarge
from foretell.domain.errors.storage import StorageUnavailable
from foretell.media.decoding import MEMORY_BYTES_MAX, REFUSED_CODE
from foretell.media.headers import read_header
from foretell.runtime.child_processes import CommandResult, RunLimits, run_once

CHILDREN_MAX: Final = 2
CHILD_DEADLINE_S: Final = 20.0
"""Of a machine that has other work too: the child itself bounds the processor time that a picture takes."""
REASON_CHARS_MAX: Final = 200
CHILD_ENV: Final = ("LD_LIBRARY_PATH",)
"""The environment variables that a child inherits: no setting and no key."""


@dataclass(frozen=True, slots=True)
class ImagePolicy:
    """Limits of an upload, and size of the normalized image."""

    upload_bytes_max: int = 2 * 1024 * 1024
    side_px: int = 256
    bytes_max: int = 100 * 1024


class ImageNormalizer:
    """Conversion of uploads to squares of one format and size."""

    def __init__(
        self,
        policy: ImagePolicy,
        *,
        python: str = sys.executable,
        deadline_s: float = CHILD_DEADLINE_S,
    ) -> None:
        self.policy = policy
        self._python = python
        self._deadline_s = deadline_s
        self._children = asyncio.Semaphore(CHILDREN_MAX)

    async def normalize(self, field: str, raw: bytes) -> bytes:
        """Return an upload as WebP, or refuse it with the name of its field."""
        if len(raw) > self.policy.upload_bytes_max:
            raise UploadTooLarge(field, self.policy.upload_bytes_max)
        header = read_header(field, raw)
        async with self._children:
            ended = await self._decode(header.kind, raw)
        if ended.code == 0 and ended.output:
            return ended.output
        if ended.code == REFUSED_CODE:
            cause = f"must be a picture that can be decoded: {ended.errors[:REASON_CHARS_MAX]}"
        else:
            cause = "must be a picture that can be decoded with little time and memory"
        raise InvalidFields([FieldProblem(field, cause)])

    async def _decode(self, kind: str, raw: bytes) -> CommandResult:
        """Return how the child ended."""
        policy = self.policy
        command = (self._python, "-I", "-m", "foretell.media.decoding")
        environment = {name: os.environ[name] for name in CHILD_ENV if name in os.environ}
        try:
            return await run_once(
                (*command, kind, str(policy.side_px), str(policy.bytes_max)),
                raw,
                RunLimits(self._deadline_s, policy.bytes_max, MEMORY_BYTES_MAX),
                environment=environment,
            )
        except TimeoutError as error:
            raise StorageUnavailable(
                f"the image was not decoded within {self._deadline_s:g} s; send it again later"
            ) from error
        except OSError as error:
            raise StorageUnavailable(
                f"no process could be started to decode the image: {error.strerror}"
            ) from error
