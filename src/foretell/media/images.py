"""Check and normalize the images that creators upload.

Size and header are checked here; only then a child process with limits decodes the file. At most
`CHILDREN_MAX` children run at once, and one that exceeds its deadline is killed.
"""

import asyncio
import contextlib
import os
import sys
from dataclasses import dataclass
from typing import Final

from foretell.domain.errors.families import FieldProblem, InvalidFields
from foretell.domain.errors.http import UploadTooLarge
from foretell.domain.errors.storage import StorageUnavailable
from foretell.media.decoding import REFUSED_CODE
from foretell.media.headers import read_header

CHILDREN_MAX: Final = 2
CHILD_DEADLINE_S: Final = 10.0
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
            code, normalized, reason = await self._decode(header.kind, raw)
        if code == 0 and normalized:
            return normalized
        if code == REFUSED_CODE:
            cause = f"must be a picture that can be decoded: {reason[:REASON_CHARS_MAX]}"
        else:
            cause = "must be a picture that can be decoded with little time and memory"
        raise InvalidFields([FieldProblem(field, cause)])

    async def _decode(self, kind: str, raw: bytes) -> tuple[int, bytes, str]:
        """Return the child's exit code, its image and its error output."""
        policy = self.policy
        try:
            child = await asyncio.create_subprocess_exec(
                *(self._python, "-I", "-m", "foretell.media.decoding"),
                *(kind, str(policy.side_px), str(policy.bytes_max)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={name: os.environ[name] for name in CHILD_ENV if name in os.environ},
            )
        except OSError as error:
            raise StorageUnavailable(f"no process for an image: {error.strerror}") from error
        try:
            async with asyncio.timeout(self._deadline_s):
                normalized, errors = await child.communicate(raw)
        except TimeoutError:
            return -1, b"", ""
        finally:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.kill()
                await child.wait()
        assert child.returncode is not None
        return child.returncode, normalized, errors.decode(errors="replace")
