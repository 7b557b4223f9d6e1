"""The saved states of the sandbox's chain: two dumps made while it runs, and one made at its end.

A dump is written to a file of its own and renamed when it is complete, so a kill at any time leaves the one
before. The file at the end is written in place by the chain itself, and stays until the next end. At a start the
undamaged file with the most blocks is used: the times of files say nothing of their order once they were copied, or
the clock was set back. A damaged one is renamed and logged.

The chain is started without the traces of its transactions: they are most of a state, and only the traces of new
transactions are asked for. It has a first block of its own at each start, beside the one that it loads, and its states
have all of them in any order: only the oldest is loaded, which the second block follows.
"""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

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
_BLOCKS: Final = "blocks"
_NEWEST_BLOCK: Final = "best_block_number"
_INFO: Final = "info"
_TRACES: Final = "traces"
_GZIP_SIZE_BYTES: Final = 4
"""A gzip file ends with the size of its content, modulo 2^32."""

_Parts = dict[str, msgspec.Raw]


class _Header(msgspec.Struct, frozen=True):
    number: str
    timestamp: str


class _Block(msgspec.Struct, frozen=True):
    header: _Header


_BLOCK: Final = msgspec.json.Decoder(_Block)
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])
_PARTS: Final = msgspec.json.Decoder(_Parts)
_LIST_OF_PARTS: Final = msgspec.json.Decoder(list[_Parts])
_NONE: Final = msgspec.Raw(b"[]")


class PreparedState(NamedTuple):
    """The file to load, None if there is none; and the names that damaged files have now."""

    file: Path | None
    damaged: Sequence[str]


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
        return _size_of(packed)

    def prepare(self) -> PreparedState:
        """Prepare a file with the undamaged state of the most blocks; rename the damaged ones."""
        damaged: list[str] = []
        blocks_by_file: dict[Path, int] = {}
        for file in self._files():
            state = _undamaged(file)
            if state is not None:
                blocks_by_file[file] = _blocks(state)
            else:
                damaged.append(file.name + DAMAGED)
                file.replace(file.with_name(damaged[-1]))
        if not blocks_by_file:
            return PreparedState(None, damaged)
        # It is read again: two large states at once would be twice the memory.
        state = _undamaged(max(blocks_by_file, key=blocks_by_file.__getitem__))
        assert state is not None
        loaded = self._folder / LOADED
        with loaded.open("wb") as written:
            written.writelines(_loadable(state))
        return PreparedState(loaded, damaged)

    def bytes_max(self) -> int:
        """Return the bytes of the largest state, unpacked, 0 before there is any."""
        return max(map(_unpacked_bytes, self._files()), default=0)

    def remove_loaded(self) -> None:
        """Remove the file that `prepare` returned; the chain has read it."""
        (self._folder / LOADED).unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """Return the files that exist; of two with as many blocks, the first is the newer one."""
        names = (AT_END, NEWEST, BEFORE, IN_PLACE)
        return [file for name in names if (file := self._folder / name).exists()]


def _unpacked_bytes(file: Path) -> int:
    if file.suffix != ".gz":
        return file.stat().st_size
    with file.open("rb") as packed:
        packed.seek(max(0, file.stat().st_size - _GZIP_SIZE_BYTES))
        return _size_of(packed.read())


def _size_of(packed: bytes) -> int:
    """Return the bytes of what was packed, by its end."""
    return int.from_bytes(packed[-_GZIP_SIZE_BYTES:], "little")


def _undamaged(file: Path) -> _Parts | None:
    """Return the parts of a file's state, or None when it is cut off or changed."""
    try:
        content = file.read_bytes()
        if file.suffix == ".gz":
            content = gzip.decompress(content)
        return _PARTS.decode(content)
    except (EOFError, gzip.BadGzipFile, zlib.error, msgspec.MsgspecError, UnicodeError):
        return None


def _blocks(state: _Parts) -> int:
    """Return the number of a state's newest block, in hexadecimal where the chain writes it so; 0 where it says none."""
    try:
        return int(str(msgspec.json.decode(state[_NEWEST_BLOCK], type=int | str)), 0)
    except (KeyError, ValueError, msgspec.MsgspecError):
        return 0


def _loadable(state: _Parts) -> Iterator[bytes]:
    """Yield the JSON of a state without traces and with one first block, part by part: it may be large."""
    separator = b"{"
    for name, part in state.items():
        yield separator + msgspec.json.encode(name) + b":"
        separator = b","
        if name == _TRANSACTIONS:
            yield from _transactions_without_traces(part)
        elif name == _BLOCKS:
            yield from _with_one_first_block(part)
        else:
            yield bytes(part)
    yield b"}" if state else b"{}"


def _transactions_without_traces(part: msgspec.Raw) -> Iterator[bytes]:
    """Yield the JSON of a list of transactions, without their traces."""
    yield b"["
    for place, transaction in enumerate(_LIST_OF_PARTS.decode(part)):
        info = _PARTS.decode(transaction[_INFO])
        transaction[_INFO] = msgspec.Raw(msgspec.json.encode(info | {_TRACES: _NONE}))
        yield (b"," if place else b"") + msgspec.json.encode(transaction)
    yield b"]"


def _with_one_first_block(part: msgspec.Raw) -> Iterator[bytes]:
    """Yield the JSON of a list of blocks, without the first blocks of later starts of the chain."""
    blocks = _LIST.decode(part)
    headers = [_BLOCK.decode(block).header for block in blocks]
    times_s = [int(each.timestamp, 16) for each in headers if int(each.number, 16) == 0]
    separator = b"["
    for block, header in zip(blocks, headers, strict=True):
        if int(header.number, 16) or int(header.timestamp, 16) == min(times_s):
            yield separator + bytes(block)
            separator = b","
    yield b"]" if blocks else b"[]"
