"""The creation of markets from notes on disk: it may be killed after any step, and continues.

The notes have the payload, its images, the request's id and every signed transaction. Each is
written before its effect, so that the same bytes are sent again, and nothing is paid twice.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from foretell.domain.errors.chain import TransactionReplaced
from foretell.domain.errors.command import ApiRefused, UnfinishedCreation
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.hexadecimal import (
    Bytes32,
    keccak256,
    parse_address,
    parse_bytes,
    word_of,
)
from foretell.sdk.chain import ChainAccount, StoredTx
from foretell.sdk.creation import CreatorClient
from foretell.sdk.files import write_private
from foretell.sdk.http import HttpClient

NOTES: Final = "creation.json"
NOT_FOUND: Final = 404
AUTH_PENDING: Final = "auth_pending"
UPDATES_NEEDED: Final = "metadata_update_pending"
CALLDATA_BYTES_MAX: Final = 128 * 1024
REPLACED_MAX: Final = 3
"""How often a transaction is signed again because another one took its nonce."""


class Image(msgspec.Struct, frozen=True):
    """An image of a payload, with the field it is sent in."""

    field: str
    name: str
    content: bytes
    media_type: str


class CreatedMarket(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A market that trades."""

    market_key: str = msgspec.field(name="key")
    condition_id: str
    token_a: str
    token_b: str
    exchange: str


class CreationNotes(msgspec.Struct):
    """Everything that a creation needs to continue."""

    payload: str
    images: list[Image] = []
    request_id: str = ""
    txs: dict[str, StoredTx] = {}
    markets: list[CreatedMarket] = []

    @property
    def payload_hash(self) -> Bytes32:
        """The hash that the creator signs."""
        return word_of(keccak256(self.payload.encode()))


Report = Callable[[str], object]
"""Takes a line about each step."""


class MarketCreation:
    """One creation in one folder."""

    def __init__(
        self,
        worker: HttpClient,
        account: ChainAccount,
        folder: Path,
        report: Report = lambda _: None,
    ) -> None:
        self._account = account
        self._client = CreatorClient(worker, account, account.signer, account.chain_id)
        self._path = folder / NOTES
        self._report = report

    def begin(self, payload: str, images: Sequence[Image]) -> None:
        """Note a payload; the same payload continues, another one waits for the end of the first."""
        notes = CreationNotes(payload, list(images))
        if self._path.exists():
            kept = self.read()
            if kept.payload != payload and not kept.markets:
                raise UnfinishedCreation(str(self._path.parent), kept.payload_hash)
            if kept.payload == payload:
                return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write(notes)

    def read(self) -> CreationNotes:
        """Return the notes."""
        return msgspec.json.decode(self._path.read_bytes(), type=CreationNotes)

    async def run(self) -> list[CreatedMarket]:
        """Do what is left of the creation, and return its markets once they trade."""
        notes = self.read()
        if notes.markets:
            return notes.markets
        await self._prepare(notes)
        plan = await self._client.wait_for_plan(notes.request_id)
        self._report(f"plan: {', '.join(item['id'] for item in plan)}")
        sent = await self._execute(notes, plan)
        answer = await self._finalize(notes, sent)
        if answer["status"] == UPDATES_NEEDED:
            sent += await self._execute(notes, answer["metadataUpdateTxPlan"])
            answer = await self._finalize(notes, sent)
        notes.markets = msgspec.convert(answer["registerResults"], list[CreatedMarket])
        self._write(notes)
        self._report(f"{answer['status']}: {len(notes.markets)} markets")
        return notes.markets

    async def _prepare(self, notes: CreationNotes) -> None:
        """Bring the request to the worker; one that it does not know, or that expired, is opened again."""
        status = await self._status(notes.request_id) if notes.request_id else None
        if status not in {None, AUTH_PENDING}:
            return
        challenge = await self._client.open_request(notes.payload)
        notes.request_id = challenge.request_id
        self._write(notes)
        images = {each.field: (each.name, each.content, each.media_type) for each in notes.images}
        await self._client.prepare(challenge, notes.payload, images)
        self._report(f"request {notes.request_id} is signed and sent")

    async def _status(self, request_id: str) -> str | None:
        try:
            return await self._client.status(request_id)
        except ApiRefused as refused:
            if refused.status != NOT_FOUND:
                raise
            return None

    async def _execute(self, notes: CreationNotes, plan: Sequence[Any]) -> list[Mapping[str, str]]:
        """Send the items of a plan in their order, each signed once."""
        for item in plan:
            await self._execute_item(notes, item)
            self._report(f"{item['id']} is in a block")
        return [{"id": item["id"], "hash": notes.txs[item["id"]].tx_hash} for item in plan]

    async def _execute_item(self, notes: CreationNotes, item: Any) -> None:
        calldata = parse_bytes(item["data"], "data", CALLDATA_BYTES_MAX)
        call = ContractCall(parse_address(item["to"]), calldata, value_wei=int(item["value"]))
        for _ in range(REPLACED_MAX):
            if item["id"] not in notes.txs:
                notes.txs[item["id"]] = await self._account.sign(call.target, call)
                self._write(notes)
            try:
                await self._account.send(notes.txs[item["id"]])
                return
            except TransactionReplaced:
                del notes.txs[item["id"]]
                self._write(notes)
        notes.txs[item["id"]] = await self._account.sign(call.target, call)
        self._write(notes)
        await self._account.send(notes.txs[item["id"]])

    async def _finalize(self, notes: CreationNotes, sent: Sequence[Mapping[str, str]]) -> Any:
        await self._client.confirm(notes.request_id, sent)
        return await self._client.finalize(notes.request_id, sent)

    def _write(self, notes: CreationNotes) -> None:
        write_private(self._path, msgspec.json.encode(notes))
