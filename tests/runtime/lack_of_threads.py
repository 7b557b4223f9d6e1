"""A system that starts no more threads, as at a limit of processes."""

import contextlib
import threading
from collections.abc import Iterator

import pytest

from foretell.runtime.threads import REFUSED_TEXT


def _refuse(_: threading.Thread) -> None:
    raise RuntimeError(REFUSED_TEXT)


@contextlib.contextmanager
def lack_of_threads() -> Iterator[None]:
    """Refuse every new thread of this process during a block, as the interpreter does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", _refuse)
        yield
