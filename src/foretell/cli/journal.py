"""`foretell journal`: checks, replays and exports a journal, and rebuilds tables from it."""

import asyncio
import enum
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from foretell.app.journals import embedded_journal_folder, journal_folder, journal_place
from foretell.cli.sources import open_database
from foretell.domain.errors.command import JournalTruncated, NoJournal
from foretell.domain.errors.storage import JournalBehindTables
from foretell.domain.exchange.commands import Command, decode_command
from foretell.domain.exchange.snapshot import state_digest
from foretell.domain.exchange.state import State
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.files.folder_lock import lock_folder, unlock_folder
from foretell.journal.files.reader import fold, read_entries
from foretell.journal.files.snapshots import newest_snapshot
from foretell.journal.postgres.completeness import check_beginning
from foretell.journal.verify import durable_until, first_sequence, verify
from foretell.settings import Settings
from foretell.store.trading.projected import forget_projected, load_sequences


def run_verify(settings: Settings, shard: int | None, console: Console) -> None:
    """Check everything, and print what the journal holds; raise at damage, with its position."""
    verdict = verify(_folder(settings, shard))
    snapshots = ", ".join(map(str, verdict.snapshots)) or "none"
    use = "yes; records after the last sync mark were not checked" if verdict.is_in_use else "no"
    _print(
        console,
        {
            "sequences": f"{verdict.first_sequence} to {verdict.last_sequence}",
            "records": verdict.records,
            "payload bytes": verdict.bytes,
            "segments": verdict.segments,
            "snapshots": snapshots,
            "in use": use,
        },
    )


def run_replay(
    settings: Settings, shard: int | None, console: Console, *, is_from_start: bool
) -> None:
    """Replay the journal in memory, and print the resulting state and the speed."""
    folder = _folder(settings, shard)
    base = None if is_from_start else newest_snapshot(folder)
    began_s = time.perf_counter()
    state, sequence = fold(folder, base, durable_until(folder))
    took_s = time.perf_counter() - began_s
    after = 0 if base is None else base.sequence
    _print(
        console,
        {
            "from": "the start" if base is None else f"the snapshot at {base.sequence}",
            "records": f"{sequence - after}, the last of them {sequence}",
            "records/s": round((sequence - after) / max(took_s, 1e-9)),
            **_counts(state),
            "state": state_digest(state),
        },
    )


def run_rebuild(settings: Settings, console: Console) -> None:
    """Empty the tables that the next start rebuilds; refuse without the whole journal, or while in use."""
    lock = lock_folder(settings.data)
    try:
        rows = asyncio.run(_empty_tables(settings))
    finally:
        unlock_folder(lock)
    console.print(f"{rows} rows removed; the next start rebuilds the tables", highlight=False)


async def _empty_tables(settings: Settings) -> int:
    async with open_database(settings) as database:
        async with database.reading() as tx:
            sequences = await load_sequences(tx)
        for name, sequence in sequences.items():
            shard = int(name.partition(":")[2] or 0)
            if settings.journal == "postgres":
                await check_beginning(journal_place(settings, ShardNumber(shard)), sequence)
            else:
                _check_files(settings, shard, sequence)
        async with database.writing() as tx:
            return await forget_projected(tx)


def _check_files(settings: Settings, shard: int, sequence: int) -> None:
    """Refuse a journal that is damaged, incomplete, or behind the tables."""
    folder = _folder(settings, shard if settings.shards else None)
    verdict = verify(folder)
    if verdict.first_sequence != 1:
        raise JournalTruncated(str(folder), verdict.first_sequence)
    if verdict.last_sequence < sequence:
        raise JournalBehindTables(sequence, verdict.last_sequence)


def run_export(settings: Settings, shard: int | None, since: int | None, until: int | None) -> None:
    """Write the commands to standard output, one JSON object on each line."""
    folder = _folder(settings, shard)
    begin = first_sequence(folder) if since is None else since
    durable = durable_until(folder)
    bounds = [bound for bound in (until, durable) if bound is not None]
    try:
        for entry in read_entries(folder, begin - 1, min(bounds, default=None)):
            line = msgspec.json.encode(_plain_command(entry.sequence, entry.payload))
            sys.stdout.buffer.write(line + b"\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print(console: Console, values: Mapping[str, object]) -> None:
    """Print a line for each value; none is cut off on a narrow terminal."""
    width = max(map(len, values)) + 2
    for name, value in values.items():
        console.print(f"{name:{width}}{value}", soft_wrap=True, markup=False, highlight=False)


def _folder(settings: Settings, shard: int | None) -> Path:
    """Return the folder of an engine's journal, or of the only one."""
    folder = (
        embedded_journal_folder(settings)
        if shard is None
        else journal_folder(settings, ShardNumber(shard))
    )
    if not folder.is_dir():
        raise NoJournal(str(folder))
    return folder


def _counts(state: State) -> dict[str, int]:
    return {
        "markets": len(state.market_by_id),
        "resting orders": len(state.live_orders),
        "unsettled trades": len(state.unsettled_trades),
        "accounts": sum(1 for _ in state.ledger.accounts()),
        "block": state.observed_block,
    }


def _plain_command(sequence: int, payload: bytes) -> dict[str, Any]:
    command: Command = decode_command(payload)
    kind = command.__struct_config__.tag
    return {"sequence": sequence, "command": kind, **_plain(command)}


def _plain(value: Any) -> Any:
    """Return a value with its field names, as JSON can hold it without loss."""
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, enum.Enum):
        return value.name
    return "0x" + value.hex() if isinstance(value, bytes) else value
