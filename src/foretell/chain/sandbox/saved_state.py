"""The saved states of the sandbox's chain: two dumps made while it runs, and one made at its end.

A dump is written to a file of its own and renamed when it is complete, so a kill at any time leaves the one
before. The file at the end is written in place by the chain itself. At a start the newest undamaged file is
used; a damaged one is renamed and logged.

The chain is started without the traces of its transactions: they are most of a state, and only the traces of new
transactions are asked for.
"""

import gzip
import zlib
from pathlib import Path
from typing import Final

import msgspec
import structlog

from foretell.domain.errors.chain import ChainStateDamaged
from foretell.runtime.files import write_synced
from foretell.runtime.folders import sync_folder

NEWEST: Final = "state.json.gz"
BEFORE: Final = "state.before.json.gz"
AT_END: Final = "end.json"
IN_PLACE: Final = "state.json"
"""Written in place by versions before this one."""
LOADED: Final = "loaded.json"
DAMAGED: Final = ".damaged"
_PARTIAL: Final = "partial"
_TRANSACTIONS: Final = "transactions"
_INFO: Final = "info"
_TRACES: Final = "traces"
_GZIP_SIZE_BYTES: Final = 4
"""A gzip file ends with the size of its content, modulo 2^32."""

_Parts = dict[str, msgspec.Raw]
_PARTS: Final = msgspec.json.Decoder(_Parts)
_LIST_OF_PARTS: Final = msgspec.json.Decoder(list[_Parts])
_NONE: Final = msgspec.Raw(b"[]")

log = structlog.get_logger(__name__)


class SavedState:
    """The files of the chain's state in its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.at_end = folder / AT_END

    def keep(self, dump: str) -> int:
        """Store a dump, which is gzip in hex, as the newest, and keep the one before; return its bytes unpacked."""
        packed = bytes.fromhex(dump.removeprefix("0x"))
        partial = self._folder / _PARTIAL
        write_synced(partial, packed)
        newest = self._folder / NEWEST
        if newest.exists():
            newest.replace(self._folder / BEFORE)
        partial.replace(newest)
        sync_folder(self._folder)
        (self._folder / IN_PLACE).unlink(missing_ok=True)
        return int.from_bytes(packed[-_GZIP_SIZE_BYTES:], "little")

    def prepare(self) -> Path | None:
        """Return a file with the newest undamaged state, or None before there is any.

        Raises ChainStateDamaged when there are files, and all are damaged.
        """
        found = sorted(self._files(), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for file in found:
            content = _undamaged(file)
            if content is not None:
                loaded = self._folder / LOADED
                loaded.write_bytes(_without_traces(content))
                return loaded
            file.replace(file.with_name(file.name + DAMAGED))
            log.error("chain state damaged", file=str(file), renamed=file.name + DAMAGED)
        if found:
            raise ChainStateDamaged(self._folder)
        return None

    def remove_loaded(self) -> None:
        """Remove the file that `prepare` returned; the chain has read it."""
        (self._folder / LOADED).unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        names = (NEWEST, BEFORE, AT_END, IN_PLACE)
        return [file for name in names if (file := self._folder / name).exists()]


def _undamaged(file: Path) -> _Parts | None:
    """Return the parts of a file's state, or None when it is cut off or changed."""
    try:
        content = file.read_bytes()
        if file.suffix == ".gz":
            content = gzip.decompress(content)
        return _PARTS.decode(content)
    except (EOFError, gzip.BadGzipFile, zlib.error, msgspec.MsgspecError, UnicodeError):
        return None


def _without_traces(state: _Parts) -> bytes:
    """Return the JSON of a state in which no transaction has traces."""
    if _TRANSACTIONS not in state:
        return msgspec.json.encode(state)
    transactions = _LIST_OF_PARTS.decode(state[_TRANSACTIONS])
    for transaction in transactions:
        info = _PARTS.decode(transaction[_INFO])
        transaction[_INFO] = msgspec.Raw(msgspec.json.encode(info | {_TRACES: _NONE}))
    whole = state | {_TRANSACTIONS: msgspec.Raw(msgspec.json.encode(transactions))}
    return msgspec.json.encode(whole)
