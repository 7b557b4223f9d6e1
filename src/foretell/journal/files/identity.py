"""The id of a journal, made with its first file: the tables note it, and refuse another journal.

A journal of an earlier version has none, and gets one when it is opened.
"""

import re
import zlib
from pathlib import Path
from typing import Final

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.framing import new_identity
from foretell.runtime.files import write_atomically

NAME: Final = "identity"
_LINE: Final = re.compile(rb"([0-9a-f]{32}) ([0-9a-f]{8})\n")


def load_identity(folder: Path) -> str:
    """Return the id of the journal in a folder that is locked; a journal without one gets one."""
    file = folder / NAME
    try:
        line = file.read_bytes()
    except FileNotFoundError:
        identity = new_identity()
        write_atomically(file, _line(identity.encode()))
        return identity
    found = _LINE.fullmatch(line)
    if found is None or line != _line(found[1]):
        raise JournalDamaged(NAME, 0, "it is not the id of a journal")
    return found[1].decode()


def _line(identity: bytes) -> bytes:
    return b"%s %08x\n" % (identity, zlib.crc32(identity))
