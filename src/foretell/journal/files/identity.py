"""The id of a journal, made with its first file: the tables note it, and refuse another journal.

A journal of an earlier version has none, and gets one when it is opened. The tables may know the id of one whose file
was lost: it gets that one again.
"""

import re
import zlib
from pathlib import Path
from typing import Final, NamedTuple

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.framing import new_identity
from foretell.runtime.files import write_atomically

NAME: Final = "identity"
_LINE: Final = re.compile(rb"([0-9a-f]{32}) ([0-9a-f]{8})\n")


class LoadedIdentity(NamedTuple):
    """The id of a journal, and whether it was made now, since there was no file."""

    identity: str
    is_made: bool


def load_identity(folder: Path) -> LoadedIdentity:
    """Return the id of the journal in a folder that is locked; a journal without one gets one."""
    file = folder / NAME
    try:
        line = file.read_bytes()
    except FileNotFoundError:
        identity = new_identity()
        write_identity(folder, identity)
        return LoadedIdentity(identity, is_made=True)
    found = _LINE.fullmatch(line)
    if found is None or line != _line(found[1]):
        raise JournalDamaged(NAME, 0, "it is not the id of a journal")
    return LoadedIdentity(found[1].decode(), is_made=False)


def write_identity(folder: Path, identity: str) -> None:
    """Write the id of the journal in a folder that is locked."""
    write_atomically(folder / NAME, _line(identity.encode()))


def _line(identity: bytes) -> bytes:
    return b"%s %08x\n" % (identity, zlib.crc32(identity))
