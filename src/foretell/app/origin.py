"""The origin of what an installation is made of: its chain, its database, its journals and its master key.

A start notes them in the data folder, and chain and journals in the database too. A later start that finds
another of them says so; it refuses another chain under orders that exist, another journal under tables that
have commands, a journal that went on apart from them, and another number of shards. The chain of a node that is
silent at the start is compared at its first answer.
"""

import asyncio
import contextlib
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog

from foretell.app.builders import Resources
from foretell.app.journals import check_places, has_files, shard_count_candidates
from foretell.chain.node_check import NodeCheck
from foretell.chain.reader import Reader
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.errors.chain import ChainUnavailable, InvalidDeployment, RpcRefused, WrongChain
from foretell.domain.errors.command import ForeignChain
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.sources import JournalOfAnotherReader
from foretell.domain.errors.storage import (
    ForeignJournal,
    JournalDamaged,
    JournalForked,
    ShardCountChanged,
)
from foretell.journal.access import payload_at
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.reader import read_entries
from foretell.journal.framing import payload_digest
from foretell.journal.port import Journal
from foretell.runtime.failures import FailureLog
from foretell.runtime.files import locked, write_atomically
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.identity import (
    CHAIN,
    JOURNAL,
    SHARDS,
    load_fact,
    load_journals,
    record_fact,
    record_first,
)
from foretell.store.index.blocks import load_last_block
from foretell.store.trading.projected import ProjectionEnd, load_ends, load_sequences

FILE: Final = "origin.json"
JOURNAL_FOLDERS: Final = "journal*"
FIRST_BLOCK: Final = "0x1"
"""A dev chain that loads a state has block 0 twice, its own and the loaded one; block 1 it has once."""
FINGERPRINT_CHARS: Final = 32
CHECKED_EVERY_S: Final = 1.0
"""The pause between two questions to a node that has been silent since the start."""
NODE_REFUSALS: Final = (ForeignChain, InvalidDeployment, WrongChain)
"""The refusals of a node that answers; whatever else fails may pass."""
_CONSEQUENCE: Final[Mapping[str, str]] = {
    "chain": "nothing was traded yet, so the start goes on",
    "database": "it does not know the API keys created before, so clients create new ones",
    "journal": "the tables have no commands, so they are made from this journal",
    "master_key": "no API key created before is valid, so clients create new ones",
}

log = structlog.get_logger(__name__)


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What a start has seen; None where it could not."""

    chain: str | None = None
    database: str | None = None
    master_key: str | None = None
    """A fingerprint, which reveals nothing of the key."""
    journals: Mapping[str, str] = {}
    """The ids of journals, by the name of their reader in the tables."""
    shards: int | None = None
    """The number of shards of the journals in the folder; 0 is the engine in the trading process."""


async def check_origin(resources: Resources, node: NodeCheck, *, has_master_key: bool) -> None:
    """Note the origin of what this process uses; say what is another than at its last start.

    Refuses orders of another chain. A node that does not answer now is compared later, by `watch_node`.
    """
    folder = resources.settings.data
    if node.is_fit:
        with contextlib.suppress(RpcRefused):  # as one that is silent
            await check_chain(resources, node)
    seen = Origin(
        database=resources.key_epoch,
        master_key=_fingerprint(resources.keys.master) if has_master_key else None,
    )
    noted = _noted(folder)
    for name in ("database", "master_key"):
        _compare(name, getattr(noted, name), getattr(seen, name))
    _note(folder, seen)


async def check_chain(resources: Resources, node: NodeCheck) -> None:
    """Compare the chain of a node with the one that is noted; refuse another one under orders.

    A node that does not answer is not compared yet, nor is one whose chain has no block: each chain
    would pass so. One that has blocks and lacks the first one, as after a pruned synchronization, cannot be compared.
    """
    folder = resources.settings.data
    reader = Reader(node.rpc, resources.deployment)
    try:
        head = await reader.head()
        if head < int(FIRST_BLOCK, 16):
            return
        seen = await fetch_chain(reader, resources.deployment)
    except WrongChain:
        raise
    except ChainUnavailable:
        return
    if seen is not None:
        noted = _noted(folder).chain
        await _check_chain(resources.database, folder, {noted}, seen)
        _compare("chain", noted, seen)
        _note(folder, Origin(chain=seen))
    if resources.settings.is_sandbox:
        await _compare_head(resources.database, head)
    node.passed.set()


async def watch_node(resources: Resources, node: NodeCheck) -> None:
    """Check a node that was silent at the start as soon as it answers; end with what refuses it, and not otherwise.

    Orders are taken meanwhile. No other request is sent to the node, so that nothing of ours reaches its chain.
    """
    if not node.passed.is_set():
        log.warning("the node has no block or does not answer, and is not used until it is checked")
        await _until_checked(resources, node)
        log.warning("the node answers and may be used")
    await asyncio.Event().wait()


async def _until_checked(resources: Resources, node: NodeCheck) -> None:
    failures = FailureLog("check of the node")
    while not node.passed.is_set():
        await asyncio.sleep(CHECKED_EVERY_S)
        try:
            if not node.is_fit:
                await node.check_fit(resources.deployment)
            if node.is_fit:
                await check_chain(resources, node)
        except NODE_REFUSALS:
            raise
        except Exception as error:  # noqa: BLE001 - the loop continues; the failure is logged
            failures.failed(error, is_expected=isinstance(error, ForetellError))
    failures.passed()


async def check_shards(database: Database, settings: Settings) -> None:
    """Note the number of shards at the first start of an installation, and refuse another one at any later start.

    With another number, markets would look for their orders in the journals of other engines. Only roles that open
    journals or send requests to engines know the number. It is not noted while a database of journals is silent.
    """
    folder, count = settings.data, settings.shards
    async with database.reading() as tx:
        noted = await load_fact(tx, SHARDS)
        sequences, journals = await load_sequences(tx), await load_journals(tx)
    in_folder = None
    if has_files(settings) and any(folder.glob(JOURNAL_FOLDERS)):
        in_folder = _noted(folder).shards
    kept = {int(each) for each in (noted, in_folder) if each is not None}
    if not kept:
        kept = _earlier_counts(shard_count_candidates(settings, sequences, journals), count)
    _check_count(kept, count)
    if noted is None:
        if not await check_places(settings):
            return
        async with database.writing() as tx:
            _check_count({int(await record_first(tx, SHARDS, str(count)))}, count)
    if has_files(settings):
        _note(folder, Origin(shards=count))


def _check_count(kept: set[int], count: int) -> None:
    if others := kept - {count}:
        raise ShardCountChanged(max(others), count)


def _earlier_counts(candidates: set[int], count: int) -> set[int]:
    """Return the number of shards that an earlier release has left; of several that it may be, the configured one."""
    if count not in candidates:
        return candidates
    if len(candidates) > 1:
        log.warning(
            "journals and tables leave the number of shards open, and the configured one is kept",
            shards=count,
            others=sorted(candidates - {count}),
        )
    return {count}


async def check_journal(database: Database, folder: Path, name: str, journal: Journal) -> None:
    """Note the id of a journal, which this process may write, and refuse another under tables with commands.

    `name` is that of its reader in the tables. A journal that ends before the tables is the engine's to refuse.
    One with commands whose file of the id was lost gets the id that is noted. One that is noted under the name of
    another reader is refused, and so is one whose record at the end of the tables is another than theirs.
    """
    fact = JOURNAL.format(name)
    async with database.reading() as tx:
        journals, sequences = await load_journals(tx), await load_sequences(tx)
        ends = await load_ends(tx)
    noted = journals.get(name)
    if journal.last_sequence < sequences.get(name, 0):
        return
    if noted is not None and isinstance(journal, FileJournal) and journal.lost_identity:
        journal.adopt_identity(noted)
        log.warning(
            "the id of a journal was lost and is the noted one again", journal=name, id=noted
        )
    seen = journal.identity
    if noted != seen:
        _check_reader(name, seen, journals)
    if noted not in {None, seen} and any(sequences.values()):
        raise ForeignJournal(name, str(noted), seen)
    if name in ends:
        await _check_end(name, ends[name], journal)
    if noted != seen:
        async with database.writing() as tx:
            await record_fact(tx, fact, seen)
    _compare("journal", _noted(folder).journals.get(name), seen)
    _note(folder, Origin(journals={name: seen}))


def _check_reader(name: str, seen: str, journals: Mapping[str, str]) -> None:
    """Refuse a journal that is noted under another reader's name: it has the commands of other markets."""
    for reader, noted in journals.items():
        if noted == seen and reader != name:
            raise JournalOfAnotherReader(name, reader, seen)


async def _check_end(name: str, end: ProjectionEnd, journal: Journal) -> None:
    """Refuse a journal that has another record than the tables at their end: the two went on apart.

    Records before the snapshots may be removed, and then there is nothing to compare. The engine refuses tables that
    lack commands of such a journal.
    """
    payload = await asyncio.to_thread(payload_at, journal.address, end.sequence)
    if payload is None:
        log.warning(
            "the journal does not show the last command of the tables, which snapshots or damage removed,"
            " so it is not compared",
            journal=name,
            sequence=end.sequence,
        )
    elif payload_digest(payload).hex() != end.digest:
        raise JournalForked(name, end.sequence)


def _compare(part: str, before: str | None, now: str | None) -> None:
    """Say that a part is another than before; one that was not seen is not compared."""
    if None not in {before, now} and before != now:
        log.warning(
            "a part of the installation is another than at the last start",
            part=part,
            consequence=_CONSEQUENCE[part],
        )


def _note(folder: Path, seen: Origin) -> None:
    """Write what was seen beside what other processes of the folder have seen; nothing new writes nothing."""
    now = {name: value for name, value in msgspec.structs.asdict(seen).items() if value is not None}
    with locked(folder):
        before = _noted(folder)
        journals = {**before.journals, **seen.journals}
        after = msgspec.structs.replace(before, **{**now, "journals": journals})
        if after != before:
            write_atomically(folder / FILE, msgspec.json.encode(after))


async def noted_chain(database: Database, folder: Path) -> str | None:
    """Return the name of the chain that the tables are of, or else the data folder; None if no start noted one."""
    async with database.reading() as tx:
        kept = await load_fact(tx, CHAIN)
    return kept or _noted(folder).chain


async def fetch_chain(reader: Reader, deployment: Deployment) -> str | None:
    """Return the name of a chain: its id, its first block and the exchange, or None if the node lacks that block."""
    first = await reader.header(FIRST_BLOCK)
    if first is None:
        return None
    exchange = deployment.exchanges[0]
    return (
        f"chain {deployment.chain_id} with first block {first.block_hash} and exchange {exchange}"
    )


async def _check_chain(database: Database, folder: Path, noted: set[str | None], seen: str) -> None:
    """Refuse orders of another chain, and note the present one in the database."""
    async with database.reading() as tx:
        kept = await load_fact(tx, CHAIN)
        has_orders = bool(await load_sequences(tx))
    others = {kept, *noted} - {None, seen}
    if others and (has_orders or _has_commands(folder)):
        raise ForeignChain(str(folder), str(min(map(str, others))), seen)
    if kept != seen:
        async with database.writing() as tx:
            await record_fact(tx, CHAIN, seen)


async def _compare_head(database: Database, head: int) -> None:
    """Say that the sandbox's chain was started from an older state than the one that was indexed."""
    async with database.reading() as tx:
        last = await load_last_block(tx)
    if last is not None and head < last.block_number:
        log.error(
            "the saved state of the chain ends below the last indexed block",
            block=head,
            indexed=last.block_number,
            consequence="what the chain had after that block is lost",
        )


def _has_commands(folder: Path) -> bool:
    """Return whether a journal of a data folder has a command; a damaged one has."""
    try:
        return any(
            next(read_entries(journal), None) is not None
            for journal in folder.glob(JOURNAL_FOLDERS)
        )
    except JournalDamaged:
        return True


def _fingerprint(master_key: bytes) -> str:
    return hmac.digest(master_key, b"foretell fingerprint", "sha256").hex()[:FINGERPRINT_CHARS]


def _noted(folder: Path) -> Origin:
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Origin)
    except FileNotFoundError:
        return Origin()
    except msgspec.MsgspecError:
        log.warning("the note of the installation's origin cannot be read", file=FILE)
        return Origin()
