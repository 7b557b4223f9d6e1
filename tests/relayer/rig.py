"""The rig of the relayer: its application, its loops, and its clients.

`RelayerRig` is the operator's side; it can be restarted over the same database. `OwnerClient` acts like
an owner's program: it knows the public interface, its own key and its API key. A third-party library
encodes the messages that it signs.
"""

import asyncio
import contextlib
import itertools
import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import httpx
from eth_account import Account
from eth_account.messages import SignableMessage, encode_defunct, encode_typed_data
from litestar import Litestar
from tests.rigs.applications import an_app
from tests.rigs.clock import Clock
from tests.rigs.databases import PATIENT
from tests.rigs.sandbox import Sandbox, SandboxMarket
from tests.rigs.values import NOW_MS, a_key

from foretell.chain.reader import Reader
from foretell.chain.rpc import TIMEOUT_S, Rpc
from foretell.chain.sender import Sender, SenderOptions
from foretell.domain.contracts.calldata import (
    Approve,
    ClientCall,
    SetApprovalForAll,
    SplitPosition,
    Transfer,
)
from foretell.domain.contracts.safe import InnerCall, SafeTx, encode_multi_send, sign_safe_tx
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID, AccountRole, SandboxAccount
from foretell.domain.evm.transaction import SentTx, TxStatus
from foretell.domain.relay.request import RelayRequest
from foretell.domain.values.credentials import Credentials, KeyIndex, L2Signer, derive_credentials
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    Address,
    Bytes32,
    checksum_address,
    keccak256,
    word_of,
)
from foretell.edge.auth import KeyRing
from foretell.relayer import resume, worker
from foretell.relayer.context import RelayerContext, RelayerOptions
from foretell.relayer.routes import build_app
from foretell.store.database import Database
from foretell.store.outbox.relays import load_relay
from foretell.store.outbox.transactions import RELAYED, TxOutbox, load_tx
from foretell.store.public_reads.places import PublicReadLimits, WaitBounds
from foretell.store.trading.api_keys import record_key

MASTER_KEY: Final = bytes(range(32))
DATABASE_FILE: Final = "foretell.db"
PASSES_MAX: Final = 10
MINED_WITHIN_S: Final = 10.0
UNLIMITED: Final = 2**256 - 1
UNIT: Final = 10**6
ONE_PLACE: Final = PublicReadLimits(own=1, own_per_client=1, bounds=WaitBounds(wait_s=0.2))
"""One place for reads of accounts' own, for which no request waits long."""

SAFE_TX: Final = [
    {"name": "to", "type": "address"},
    {"name": "value", "type": "uint256"},
    {"name": "data", "type": "bytes"},
    {"name": "operation", "type": "uint8"},
    {"name": "safeTxGas", "type": "uint256"},
    {"name": "baseGas", "type": "uint256"},
    {"name": "gasPrice", "type": "uint256"},
    {"name": "gasToken", "type": "address"},
    {"name": "refundReceiver", "type": "address"},
    {"name": "nonce", "type": "uint256"},
]
CREATE_PROXY: Final = [
    {"name": "paymentToken", "type": "address"},
    {"name": "payment", "type": "uint256"},
    {"name": "paymentReceiver", "type": "address"},
]

Body = dict[str, Any]


@dataclass
class RelayerRig:
    """The operator's side; its folder has the database already."""

    sandbox: Sandbox
    folder: Path
    rpc_url: str = ""
    timeout_s: float = TIMEOUT_S
    clock: Clock = field(default_factory=Clock)
    options: RelayerOptions = field(default_factory=RelayerOptions)
    confirmations: int = 1
    limits: PublicReadLimits = PATIENT
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        """Create all objects, as a new process does, over the files on the disk."""
        url = f"sqlite+aiosqlite:///{self.folder / DATABASE_FILE}"
        self.database = await self.stack.enter_async_context(Database(url, self.limits))
        node = Rpc(self.rpc_url or self.sandbox.rpc_url, SANDBOX_CHAIN_ID, timeout_s=self.timeout_s)
        rpc = await self.stack.enter_async_context(node)
        self.open(
            RelayerContext(
                database=self.database,
                deployment=self.sandbox.deployment,
                reader=Reader(rpc, self.sandbox.deployment),
                sender=Sender(
                    rpc,
                    self.sandbox.account(AccountRole.RELAYER).private_key,
                    TxOutbox(self.database, RELAYED),
                    SenderOptions(SANDBOX_CHAIN_ID, confirmations=self.confirmations),
                    self.clock.now_ms,
                ),
                key_ring=KeyRing(self.database, MASTER_KEY, [SANDBOX_CHAIN_ID], self.clock.now_ms),
                now_ms=self.clock.now_ms,
                new_uuid=self._new_uuid,
                options=self.options,
            )
        )

    def open(self, context: RelayerContext) -> None:
        """Serve with this context."""
        self.context = context
        self.app: Litestar = an_app(build_app, context)
        transport = httpx.ASGITransport(self.app)  # type: ignore[arg-type]  # scopes typed closer
        self.http = httpx.AsyncClient(transport=transport, base_url="http://relayer", timeout=60)

    def change(self, **options: Any) -> None:
        """Serve with changed options."""
        self.options = replace(self.options, **options)
        self.open(replace(self.context, options=self.options))

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

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Run the loops during a block."""
        work = asyncio.create_task(worker.run(self.context))
        yield
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work

    async def run_once(self) -> int:
        """Run one pass of the loops."""
        await self.context.sender.run_once()
        return await resume.run_once(self.context)

    async def run_until_mined(self, transaction_id: str) -> None:
        """Send and watch until the transaction of a request is mined, which the node does a moment after it takes one."""
        for _ in range(PASSES_MAX):
            await self.context.sender.run_once()
            if (await self.carrier(transaction_id)).status is TxStatus.MINED:
                return
            await asyncio.sleep(MINED_WITHIN_S / PASSES_MAX)
        raise AssertionError("the transaction is not mined")

    async def settle(self) -> None:
        """Run background work and mine blocks until no request is open."""
        for _ in range(PASSES_MAX):
            await self.sandbox.mine()
            if not await self.run_once():
                return
        raise AssertionError("the background work does not end")

    async def relay(self, transaction_id: str) -> RelayRequest:
        async with self.database.reading() as tx:
            request = await load_relay(tx, transaction_id)
        assert request is not None
        return request

    async def carrier(self, transaction_id: str) -> SentTx:
        async with self.database.reading() as tx:
            sent = await load_tx(tx, RELAYED, f"relay:{transaction_id}")
        assert sent is not None
        return sent

    async def sent_count(self) -> int:
        """Return the number of transactions of the relayer's account on the chain."""
        address = self.sandbox.account(AccountRole.RELAYER).address
        rpc = self.sandbox.rpc
        return int(await rpc.call("eth_getTransactionCount", address, "latest"), 16)

    async def transaction(self, transaction_id: str) -> Body:
        answer = await self.http.get("/transaction", params={"id": transaction_id})
        (record,) = answer.json()
        found: Body = record
        return found

    async def automine(self, *, is_on: bool) -> None:
        """Let the node mine a block for each transaction, or none by itself."""
        await self.sandbox.rpc.send("evm_setAutomine", is_on)

    async def send_as(self, sender: Address, target: Address, calldata: bytes) -> None:
        """Send a transaction from any address, at a price that puts it first."""
        rpc = self.sandbox.rpc
        await rpc.send("anvil_setBalance", sender, hex(10**20))
        await rpc.send("anvil_impersonateAccount", sender)
        call = {
            "from": sender,
            "to": target,
            "data": "0x" + calldata.hex(),
            "gas": hex(500_000),
            "maxFeePerGas": hex(10**12),
            "maxPriorityFeePerGas": hex(10**11),
        }
        await rpc.send("eth_sendTransaction", call)
        await rpc.send("anvil_stopImpersonatingAccount", sender)

    async def relayer_wei(self) -> int:
        """Return the relayer's balance for gas."""
        address = self.sandbox.account(AccountRole.RELAYER).address
        return int(await self.sandbox.rpc.call("eth_getBalance", address, "latest"), 16)

    async def owner(self, name: str) -> "OwnerClient":
        """Return a new owner that has only an API key."""
        owner = OwnerClient(self, SandboxAccount(AccountRole.TRADER, a_key(name)))
        await owner.create_key()
        return owner


@dataclass
class OwnerClient:
    """An owner's program."""

    rig: RelayerRig
    account: SandboxAccount
    nonce: int = 0

    @property
    def address(self) -> Address:
        return self.account.address

    @property
    def safe(self) -> Address:
        return self.rig.sandbox.deployment.safe_of(self.address)

    @property
    def index(self) -> KeyIndex:
        return KeyIndex(SANDBOX_CHAIN_ID, self.address, self.nonce)

    @property
    def credentials(self) -> Credentials:
        return derive_credentials(MASTER_KEY, self.index)

    async def create_key(self) -> None:
        async with self.rig.database.writing() as tx:
            await record_key(tx, self.credentials.key_id, self.index, NOW_MS)

    def l2_headers(self, method: str, path: str, raw: bytes = b"") -> dict[str, str]:
        """Return the headers that sign a request with the owner's API key."""
        timestamp = str(self.rig.clock.at_ms // 1000)
        signer = L2Signer(self.credentials.secret)
        return {
            "SERVICE_ADDRESS": checksum_address(self.address),
            "SERVICE_SIGNATURE": signer.sign(timestamp, method, path, raw),
            "SERVICE_TIMESTAMP": timestamp,
            "SERVICE_API_KEY": self.credentials.key_id,
            "SERVICE_PASSPHRASE": self.credentials.passphrase,
        }

    async def post(self, path: str, body: object) -> httpx.Response:
        raw = json.dumps(body).encode()
        headers = self.l2_headers("POST", path, raw)
        return await self.rig.http.post(path, content=raw, headers=headers)

    async def get(self, path: str, **query: Any) -> httpx.Response:
        headers = self.l2_headers("GET", path)
        return await self.rig.http.get(path, params=query, headers=headers)

    async def submit(self, body: Body) -> httpx.Response:
        return await self.post("/submit", body)

    async def submitted(self, body: Body) -> str:
        """Submit a body that must be accepted, and return its transactionID."""
        answer = await self.submit(body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["transactionID"])

    async def redeem(self, body: Body) -> httpx.Response:
        return await self.post("/operations/redeem-position", body)

    async def merge(self, body: Body) -> httpx.Response:
        return await self.post("/operations/merge-position", body)

    async def next_nonce(self) -> str:
        params = {"address": checksum_address(self.address), "type": "SAFE"}
        answer = await self.rig.http.get("/nonce", params=params)
        return str(answer.json()["nonce"])

    def create_body(self, **fields: Any) -> Body:
        """Return the body that deploys the owner's wallet."""
        deployment = self.rig.sandbox.deployment
        message = encode_typed_data(
            domain_data={
                "name": deployment.safe_factory_name,
                "chainId": SANDBOX_CHAIN_ID,
                "verifyingContract": checksum_address(deployment.safe_factory),
            },
            message_types={"CreateProxy": CREATE_PROXY},
            message_data={
                "paymentToken": ZERO_ADDRESS,
                "payment": 0,
                "paymentReceiver": ZERO_ADDRESS,
            },
        )
        return {
            "type": "SAFE-CREATE",
            "from": checksum_address(self.address),
            "to": checksum_address(deployment.safe_factory),
            "proxyWallet": checksum_address(self.safe),
            "data": "0x",
            "signature": self.sign(message),
            "signatureParams": {
                "paymentToken": ZERO_ADDRESS,
                "payment": "0",
                "paymentReceiver": ZERO_ADDRESS,
            },
        } | fields

    def sign(self, message: SignableMessage) -> str:
        signed = Account.sign_message(message, self.account.private_key)
        return "0x" + bytes(signed.signature).hex()

    def safe_message(self, to: str, data: bytes, nonce: int, operation: int = 0) -> SignableMessage:
        """Return the Safe transaction as a third-party library encodes it for signing."""
        return encode_typed_data(
            domain_data={
                "chainId": SANDBOX_CHAIN_ID,
                "verifyingContract": checksum_address(self.safe),
            },
            message_types={"SafeTx": SAFE_TX},
            message_data={
                "to": to,
                "value": 0,
                "data": data,
                "operation": operation,
                "safeTxGas": 0,
                "baseGas": 0,
                "gasPrice": 0,
                "gasToken": ZERO_ADDRESS,
                "refundReceiver": ZERO_ADDRESS,
                "nonce": nonce,
            },
        )

    def body(
        self, to: Address, data: bytes, nonce: str = "0", operation: int = 0, **fields: Any
    ) -> Body:
        """Return the body of a transaction, signed as the ecosystem's clients do."""
        message = self.safe_message(checksum_address(to), data, int(nonce), operation)
        return self.signed_body(to, data, nonce, operation, personal_signature(self, message)) | (
            fields
        )

    def signed_body(
        self, to: Address, data: bytes, nonce: str, operation: int, signature: str
    ) -> Body:
        return {
            "type": "SAFE",
            "from": checksum_address(self.address),
            "to": checksum_address(to),
            "proxyWallet": checksum_address(self.safe),
            "data": "0x" + data.hex(),
            "nonce": nonce,
            "signature": signature,
            "signatureParams": {
                "operation": str(operation),
                "safeTxnGas": "0",
                "baseGas": "0",
                "gasPrice": "0",
                "gasToken": ZERO_ADDRESS,
                "refundReceiver": ZERO_ADDRESS,
            },
        }

    async def call_body(self, to: Address, call: ClientCall, **fields: Any) -> Body:
        """Return the body of one call at the wallet's next nonce."""
        return self.body(to, call.encode(), await self.next_nonce(), **fields)

    async def tokens_body(self, call: ClientCall, **fields: Any) -> Body:
        """Return the body of one call of the conditional tokens."""
        tokens = self.rig.sandbox.deployment.conditional_tokens
        return await self.call_body(tokens, call, **fields)

    async def bundle_body(self, calls: Sequence[InnerCall]) -> Body:
        """Return the body of several calls at once."""
        multi_send = self.rig.sandbox.deployment.multi_send
        return self.body(multi_send, encode_multi_send(calls), await self.next_nonce(), operation=1)

    async def deploy(self) -> None:
        """Deploy the owner's wallet through the relayer."""
        await self.submitted(self.create_body())
        await self.rig.settle()

    async def fund(self, units: int) -> None:
        """Fund the wallet with collateral."""
        sandbox = self.rig.sandbox
        gift = Transfer(self.safe, units).encode()
        await sandbox.call(sandbox.account(AccountRole.FAUCET), sandbox.deployment.collateral, gift)

    async def hold(self, market: SandboxMarket, units: int) -> None:
        """Split collateral into complete sets of a market, through the relayer."""
        deployment = self.rig.sandbox.deployment
        await self.fund(units)
        split = SplitPosition(deployment.collateral, market.condition_id, units)
        approval = Approve(deployment.conditional_tokens, units)
        calls = [
            InnerCall(deployment.collateral, approval.encode()),
            InnerCall(deployment.conditional_tokens, split.encode()),
        ]
        await self.submitted(await self.bundle_body(calls))
        await self.rig.settle()

    async def execute_alone(self, to: Address, calldata: bytes) -> None:
        """Execute a call of the wallet without the relayer, at the owner's own cost."""
        sandbox = self.rig.sandbox
        safe_tx = SafeTx(self.safe, to, calldata, await self.safe_nonce())
        digest = safe_tx.digest(SANDBOX_CHAIN_ID)
        signature = sign_safe_tx(digest, self.account.private_key)
        await sandbox.rpc.send("anvil_setBalance", self.address, hex(10**20))
        await sandbox.call(self.account, self.safe, safe_tx.encode(signature))

    async def collateral_units(self) -> int:
        return await self.rig.sandbox.reader.collateral_units(self.safe)

    async def safe_nonce(self) -> int:
        state = await self.rig.sandbox.reader.safe(self.safe)
        return 0 if state is None else state.nonce


def personal_signature(owner: OwnerClient, message: SignableMessage) -> str:
    """Return a signature of the digest as a personal message, marked in v as clients do."""
    digest = keccak256(b"\x19" + message.version + message.header + message.body)
    signature = bytes.fromhex(owner.sign(encode_defunct(digest))[2:])
    return "0x" + (signature[:64] + bytes([signature[64] + 4])).hex()


def with_v(signature: str, v: int) -> str:
    """Return a signature with another last byte."""
    return signature[:-2] + f"{v:02x}"


def an_approval(rig: RelayerRig, units: int = UNLIMITED) -> Approve:
    """Return a harmless call: an approval of the exchange for the wallet's collateral."""
    return Approve(rig.sandbox.deployment.exchange, units)


def an_operator_approval(rig: RelayerRig) -> SetApprovalForAll:
    return SetApprovalForAll(rig.sandbox.deployment.exchange, is_approved=True)


def word(text: str) -> Bytes32:
    return word_of(keccak256(text.encode()))


def changed(body: Body, path: str, value: object) -> Body:
    """Return a body with one field changed; a dot separates the names of nested fields."""
    if "." not in path:
        return body | {path: value}
    part, name = path.split(".")
    return body | {part: body[part] | {name: value}}


def without(body: Body, path: str) -> Body:
    """Return a body without one field."""
    if "." not in path:
        return {name: value for name, value in body.items() if name != path}
    part, name = path.split(".")
    return body | {part: without(body[part], name)}


def error_of(answer: httpx.Response) -> tuple[int, str]:
    """Return the status and the words of a refusal."""
    document: Mapping[str, Any] = answer.json()
    return answer.status_code, str(document["error"])
