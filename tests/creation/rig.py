"""The rig of market creation: its application, its background work, and its clients.

`CreationRig` is the operator's side; it can be restarted over the same database. `CreatorClient` acts
like a creator's program: it knows only the public interface and its own key.
"""

import itertools
import json
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import httpx
from eth_account import Account
from eth_account.messages import encode_typed_data
from litestar import Litestar
from tests.rigs.applications import an_app
from tests.rigs.clock import Clock
from tests.rigs.databases import PATIENT
from tests.rigs.payloads import a_payload_document
from tests.rigs.pictures import a_picture
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import a_key, a_word

from foretell.chain.deploy_plan import CreatorWhitelist
from foretell.chain.planned_contracts import (
    CREATE2_FACTORY,
    SALT,
    create2_contract,
    whitelist_code,
)
from foretell.chain.sender import Sender, SenderOptions
from foretell.chain.setup_caller import SetupCaller
from foretell.creation.context import CreationContext, CreationOptions
from foretell.creation.routes import build_app
from foretell.creation.worker import RequestRunner
from foretell.domain.contracts.calldata import REGISTER_WHITELIST, Transfer
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID, AccountRole, SandboxAccount
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.hexadecimal import Address, checksum_address, keccak256, parse_address
from foretell.media.blobs import BlobStore
from foretell.media.images import ImageNormalizer, ImagePolicy
from foretell.store.database import Database
from foretell.store.outbox.transactions import REGISTRATION, TxOutbox
from foretell.store.public_reads.places import PublicReadLimits

PASSES_MAX: Final = 10
DATABASE_FILE: Final = "foretell.db"
PICTURE: Final = a_picture("PNG", (60, 40))


@dataclass
class CreationRig:
    """The operator's side."""

    sandbox: Sandbox
    folder: Path
    clock: Clock = field(default_factory=Clock)
    options: CreationOptions = field(default_factory=CreationOptions)
    limits: PublicReadLimits = PATIENT
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        """Create all objects, as a new process does, over the files on the disk."""
        url = f"sqlite+aiosqlite:///{self.folder / DATABASE_FILE}"
        self.database = await self.stack.enter_async_context(Database(url, self.limits))
        registrar = self.sandbox.account(AccountRole.REGISTRAR)
        self.context = CreationContext(
            database=self.database,
            deployment=self.sandbox.deployment,
            reader=self.sandbox.reader,
            registrar=Sender(
                self.sandbox.rpc,
                registrar.private_key,
                TxOutbox(self.database, REGISTRATION),
                SenderOptions(SANDBOX_CHAIN_ID, confirmations=self.options.confirmations),
                self.clock.now_ms,
            ),
            images=ImageNormalizer(ImagePolicy()),
            blobs=BlobStore(self.folder / "blobs"),
            storage_key=self.sandbox.account(AccountRole.STORAGE).private_key,
            options=self.options,
            now_ms=self.clock.now_ms,
            new_uuid=self._new_uuid,
            new_word=lambda: a_word(f"nonce {next(self.numbers)}"),
        )
        self.open(self.context)

    def open(self, context: CreationContext) -> None:
        """Serve with this context."""
        self.context = context
        self.app: Litestar = an_app(build_app, context)
        self.runner = RequestRunner(context, self.clock.now_s)
        transport = httpx.ASGITransport(self.app)  # type: ignore[arg-type]  # scopes typed closer
        self.http = httpx.AsyncClient(transport=transport, base_url="http://worker")

    def change(self, **context: Any) -> None:
        """Serve with a changed context."""
        self.open(replace(self.context, **context))

    async def restart(self) -> None:
        """Stop and start again, which loses everything in memory."""
        await self.stop()
        await self.start()

    async def stop(self) -> None:
        await self.http.aclose()
        await self.stack.aclose()
        self.stack = AsyncExitStack()

    def _new_uuid(self) -> str:
        return str(uuid.UUID(bytes=keccak256(f"id {next(self.numbers)}".encode())[:16], version=4))

    async def run_once(self) -> int:
        """Mine a block, then run one pass of the background work and of the registrar."""
        await self.sandbox.mine()
        running = await self.runner.run_once()
        await self.context.registrar.run_once()
        return running

    async def settle(self, pause_ms: int = 0) -> None:
        """Run background work until no request is running, with a pause between two passes."""
        for _ in range(PASSES_MAX):
            if not await self.run_once():
                return
            self.clock.move(pause_ms)
        raise AssertionError("the background work does not end")

    def creator(self, account: SandboxAccount | None = None) -> "CreatorClient":
        return CreatorClient(self, account or self.sandbox.account(AccountRole.CREATOR))

    async def whitelist(self, account: SandboxAccount) -> None:
        """Deploy and register a proposer whitelist for a creator."""
        proposer = self.sandbox.account(AccountRole.PROPOSER).address
        code = whitelist_code(CreatorWhitelist(account.private_key, (proposer,)))
        await self.sandbox.call(account, CREATE2_FACTORY, SALT + code)
        registry = self.sandbox.deployment.address(ContractName.PROPOSER_WHITELIST_REGISTRY)
        call = REGISTER_WHITELIST.encode(create2_contract(code).address)
        await self.sandbox.call(account, registry, call)

    async def newcomer(self, name: str, units: int = 0) -> SandboxAccount:
        """Return a new account with gas and an amount of collateral."""
        account = SandboxAccount(AccountRole.CREATOR, a_key(name))
        await self.sandbox.rpc.send("anvil_setBalance", account.address, hex(10**20))
        if units:
            await self.give(account.address, units)
        return account

    async def give(self, address: Address, units: int) -> None:
        """Transfer collateral to an account."""
        faucet = self.sandbox.account(AccountRole.FAUCET)
        gift = Transfer(address, units).encode()
        await self.sandbox.call(faucet, self.sandbox.deployment.collateral, gift)


@dataclass
class CreatorClient:
    """A creator's program."""

    rig: CreationRig
    account: SandboxAccount

    @property
    def address(self) -> str:
        return checksum_address(self.account.address)

    def payload(self, **fields: Any) -> bytes:
        """Return a payload of this creator, as the bytes that are hashed."""
        return json.dumps(a_payload_document(creator=self.address, **fields)).encode()

    async def post(self, path: str, body: Mapping[str, Any]) -> httpx.Response:
        return await self.rig.http.post(path, json=body)

    async def ask(self, raw: bytes) -> httpx.Response:
        """Request a challenge for a payload."""
        body = {
            "creator": self.address,
            "chainId": SANDBOX_CHAIN_ID,
            "payloadHash": "0x" + keccak256(raw).hex(),
        }
        return await self.post("/prepare-auth", body)

    def sign(self, challenge: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
        """Return the envelope of a challenge, signed with a third-party library."""
        names = [each["name"] for each in challenge["types"]["CreateMarketAuth"]]
        message = encode_typed_data(
            domain_data=challenge["domain"] | {"chainId": challenge["chainId"]},
            message_types=challenge["types"],
            message_data={name: challenge[name] for name in names},
        )
        signed = Account.sign_message(message, self.account.private_key)
        kept = ("requestId", "nonce", "expiresAt", "payloadHash")
        envelope = {name: challenge[name] for name in kept}
        return envelope | {"signature": "0x" + bytes(signed.signature).hex()} | fields

    async def send(
        self,
        raw: bytes,
        envelope: Mapping[str, Any],
        images: Sequence[tuple[str, bytes]] = (("eventImage", PICTURE),),
    ) -> httpx.Response:
        """Send a payload with its envelope and images."""
        texts = (("payload", raw), ("auth", json.dumps(envelope).encode()))
        return await self.rig.http.post(
            "/prepare",
            files=[
                *((name, (None, content)) for name, content in texts),
                *((name, ("picture", content, "image/png")) for name, content in images),
            ],
        )

    async def prepare(self, raw: bytes | None = None) -> str:
        """Request a challenge, sign and send it; return the request's id."""
        raw = self.payload() if raw is None else raw
        challenge = (await self.ask(raw)).json()
        answer = await self.send(raw, self.sign(challenge))
        assert answer.status_code == 200, answer.text
        return str(challenge["requestId"])

    async def record(self, request_id: str) -> dict[str, Any]:
        """Return the record of a request."""
        answer = await self.rig.http.get("/pending", params={"requestId": request_id})
        assert answer.status_code == 200, answer.text
        record: dict[str, Any] = answer.json()["request"]
        return record

    async def execute(self, items: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
        """Send every item of a plan from the creator's wallet, and return their hashes."""
        sandbox = self.rig.sandbox
        caller = SetupCaller(sandbox.rpc, self.account.private_key, SANDBOX_CHAIN_ID, mines=True)
        sent = []
        for item in items:
            call = ContractCall(
                parse_address(item["to"]),
                bytes.fromhex(item["data"][2:]),
                value_wei=int(item["value"]),
            )
            (receipt,) = await caller.call_all([call])
            sent.append({"id": item["id"], "hash": receipt.tx_hash})
        return sent

    async def confirm(self, request_id: str, txs: Sequence[Mapping[str, str]]) -> httpx.Response:
        body = {"requestId": request_id, "creator": self.address, "txs": list(txs)}
        return await self.post("/tx-confirm", body)

    async def finalize(
        self, request_id: str, txs: Sequence[Mapping[str, str]] | None = None
    ) -> httpx.Response:
        body: dict[str, Any] = {"requestId": request_id, "creator": self.address}
        return await self.post("/finalize", body if txs is None else body | {"txs": list(txs)})

    async def prepared(self, raw: bytes | None = None) -> str:
        """Bring a new request to `prepared`."""
        request_id = await self.prepare(raw)
        await self.rig.settle()
        assert (await self.record(request_id))["status"] == "prepared"
        return request_id

    async def paid(self, request_id: str) -> list[dict[str, str]]:
        """Send the plan of a prepared request."""
        return await self.execute((await self.record(request_id))["prepared"]["txPlan"])

    async def pending_update(self, raw: bytes | None = None) -> str:
        """Bring a new request to `metadata_update_pending`."""
        request_id = await self.prepared(raw)
        answer = await self.finalize(request_id, await self.paid(request_id))
        assert answer.status_code == 200, answer.text
        await self.rig.settle()
        assert (await self.record(request_id))["status"] == "metadata_update_pending"
        return request_id

    async def finalized(self, raw: bytes | None = None) -> str:
        """Bring a new request all the way."""
        request_id = await self.pending_update(raw)
        updates = (await self.record(request_id))["metadataUpdateTxPlan"]
        answer = await self.finalize(request_id, await self.execute(updates))
        assert answer.json()["status"] == "finalized", answer.text
        return request_id


async def status_of(creator: CreatorClient, request_id: str) -> str:
    return str((await creator.record(request_id))["status"])


def error_of(answer: httpx.Response) -> tuple[int, str]:
    """Return the status and the code of a refusal; its body must have the published form."""
    body = answer.json()
    assert body.keys() == {"error"}, body
    assert body["error"].keys() == {"code", "message", "details"}, body
    return answer.status_code, body["error"]["code"]


def details_of(answer: httpx.Response) -> list[tuple[str, str]]:
    """Return the fields that a refusal names, each with its message."""
    return [(each["field"], each["message"]) for each in answer.json()["error"]["details"]]


def address_of(text: str) -> Address:
    return parse_address(text)
