"""Fields that a client may not set, in every request of market creation.

A market is made twice, on the same state of the chain and of new tables: by requests as documented, and with the
fields in each object of one of the requests. The answers and all rows are equal, but for what names the payload's
own bytes.
"""

import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from tests.creation.rig import DATABASE_FILE, PICTURE, CreationRig
from tests.edge.documents.planted_fields import (
    CANARIES,
    OTHERS,
    camel,
    changes_of,
    planted,
    rows_of,
)
from tests.rigs.chain_snapshots import take_back
from tests.rigs.payloads import a_payload_document, event_fields, sports_fields
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import NOW_S

from foretell.chain import fees
from foretell.creation.routes import build_app
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.evm.raw_transaction import Fees
from foretell.domain.values.hexadecimal import keccak256
from foretell.store.tables import requests

pytestmark = pytest.mark.anyio

CHANGES: Final = {str(each): each for each in changes_of(build_app)}
VALIDATE: Final = "POST /validate"
AUTH: Final = "POST /prepare-auth"
PREPARE: Final = "POST /prepare"
CONFIRM: Final = "POST /tx-confirm"
FINALIZE: Final = "POST /finalize"
PAYLOAD: Final = CHANGES[VALIDATE].schema
TEXTS: Final = OTHERS | {"id", "nonce", "status", "requestId", "creator"}
"""Names of parts that an upload does not have."""
IN_ENVELOPE: Final = TEXTS | {camel(each.name) for each in requests.columns}
"""Names for an envelope, which is short."""
CATEGORIES: Final = [{"label": f"Town {number}", "slug": f"town-{number}"} for number in range(5)]
DOCUMENTS: Final = {
    "binary": a_payload_document(),
    "event": a_payload_document(**event_fields(categories=CATEGORIES)),
    "game": a_payload_document(**sports_fields()),
}


class Walk:
    """The creation of a market by a client that plants fields in the requests of one operation."""

    def __init__(self, rig: CreationRig, name: str, canary: object) -> None:
        self.rig = rig
        self.creator = rig.creator()
        self._name = name
        self._canary = canary
        self._words_by_text: dict[str, str] = {}
        self.answers: list[Any] = []

    def _sent(self, name: str, body: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
        if name != self._name or self._canary is None:
            return body
        sent = planted(body, [schema], self._canary)
        assert len(sent) > len(body)
        return sent

    async def post(self, name: str, body: Mapping[str, Any]) -> Any:
        """Send a body, which must be accepted, and return the answer."""
        change = CHANGES[name]
        answer = await self.rig.http.post(change.path, json=self._sent(name, body, change.schema))
        return self._accepted(answer)

    def _accepted(self, answer: httpx.Response) -> Any:
        assert answer.status_code == 200, answer.text
        self.answers.append(answer.json())
        return answer.json()

    async def prepare(self, document: Mapping[str, Any]) -> str:
        """Have a payload accepted, and return the id of its request."""
        raw = json.dumps(self._sent(PREPARE, document, PAYLOAD)).encode()
        payload_hash = "0x" + keccak256(raw).hex()
        self._words_by_text[payload_hash] = "hash of the payload"
        body = {
            "creator": self.creator.address,
            "chainId": SANDBOX_CHAIN_ID,
            "payloadHash": payload_hash,
        }
        challenge = await self.post(AUTH, body)
        envelope = self.creator.sign(challenge)
        self._words_by_text[envelope["signature"][2:]] = "signature of the payload"
        is_planted = self._name == PREPARE and self._canary is not None
        if is_planted:
            envelope = planted(envelope, [], self._canary, IN_ENVELOPE)
        auth = json.dumps(envelope).encode()
        names = sorted(TEXTS) if is_planted else ()
        files: Sequence[Any] = [
            *((name, (None, str(self._canary))) for name in names),
            ("payload", (None, raw)),
            ("auth", (None, auth)),
            ("eventImage", ("picture", PICTURE, "image/png")),
        ]
        self._accepted(await self.rig.http.post("/prepare", files=files))
        await self.rig.settle()
        return str(challenge["requestId"])

    async def paid(self, plan: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
        """Send the creator's transactions."""
        sent = await self.creator.execute(plan)
        self._words_by_text |= {each["hash"]: f"hash of {each['id']}" for each in sent}
        return sent

    async def make(self, document: Mapping[str, Any]) -> None:
        """Make a market of a payload, from its check to the end."""
        checked = await self.post(VALIDATE, document)
        self._words_by_text[checked["payloadHash"]] = "hash of what was checked"
        request_id = await self.prepare(document)
        body = {"requestId": request_id, "creator": self.creator.address}
        txs = await self.paid((await self.creator.record(request_id))["prepared"]["txPlan"])
        await self.post(CONFIRM, body | {"txs": txs})
        await self.post(FINALIZE, body | {"txs": txs})
        await self.rig.settle()
        updates = (await self.creator.record(request_id))["metadataUpdateTxPlan"]
        final = await self.post(FINALIZE, body | {"txs": await self.paid(updates)})
        assert final["status"] == "finalized", final

    async def results(self) -> tuple[str, str]:
        """Return the answers and all rows as text, without what differs with the bytes of the payload."""
        rows = await rows_of(self.rig.database)
        for request in rows["requests"]:
            del request["payload"]
        return self._named_alike(repr(self.answers)), self._named_alike(repr(rows))

    def _named_alike(self, text: str) -> str:
        for found, words in self._words_by_text.items():
            text = text.replace(found, words)
        return text


@pytest.fixture(autouse=True)
def fixed_fees(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fees of first attempts, which depend on earlier blocks otherwise."""

    async def fetch(_rpc: object, _cap_wei: int) -> Fees:
        return Fees(10**11, 10**10)

    monkeypatch.setattr(fees, "fetch_fees", fetch)


def copy_to(folder: Path, database: Path) -> None:
    folder.mkdir()
    shutil.copy(database, folder / DATABASE_FILE)


@contextlib.asynccontextmanager
async def serving(sandbox: Sandbox, folder: Path, database: Path) -> AsyncIterator[CreationRig]:
    """Yield market creation with new tables; the chain is as before afterwards.

    Blocks are mined on demand: rows have their numbers, and a node that mines by itself mines one more or less.
    """
    copy_to(folder, database)
    snapshot = await sandbox.rpc.send("evm_snapshot")
    await sandbox.rpc.send("evm_setAutomine", False)  # noqa: FBT003 - the protocol's own
    await sandbox.rpc.send("evm_setNextBlockTimestamp", NOW_S)
    await sandbox.mine()
    rig = CreationRig(sandbox, folder)
    await rig.start()
    try:
        yield rig
    finally:
        await sandbox.rpc.send("evm_setAutomine", True)  # noqa: FBT003 - the protocol's own
        await rig.stop()
        await take_back(sandbox.rpc, snapshot)


def test_every_change_of_the_document_has_its_request() -> None:
    assert {VALIDATE, AUTH, PREPARE, CONFIRM, FINALIZE} == CHANGES.keys()


@pytest.mark.case("G-08")
@pytest.mark.parametrize("kind", DOCUMENTS)
async def test_a_market_of_requests_with_fields_that_a_client_may_not_set_is_stored_as_without_them(
    fresh_sandbox: Sandbox, empty_database: Path, tmp_path: Path, kind: str
) -> None:
    async def made(name: str, canary: object = None) -> tuple[str, str]:
        folder = tmp_path / f"{name.rpartition('/')[2]} {canary}"
        async with serving(fresh_sandbox, folder, empty_database) as rig:
            walk = Walk(rig, name, canary)
            await walk.make(DOCUMENTS[kind] | {"creator": walk.creator.address})
            return await walk.results()

    documented = await made("")
    for number, name in enumerate(CHANGES):
        canary = CANARIES[number % len(CANARIES)]
        assert await made(name, canary) == documented, name
