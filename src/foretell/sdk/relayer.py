"""The client of a Safe's owner: it signs transactions of the Safe, and the relayer sends them."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

from foretell.domain.contracts.safe import (
    OPERATION_CALL,
    OPERATION_DELEGATECALL,
    InnerCall,
    encode_multi_send,
)
from foretell.domain.errors.command import ApiRefused
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, checksum_address
from foretell.sdk.authentication import AuthenticatedClient
from foretell.sdk.http import POLL_S, HttpClient, wait_for
from foretell.sdk.signing.typed_data import SafeCall, new_safe_data, safe_tx_data

DONE: Final = frozenset({"STATE_MINED", "STATE_CONFIRMED"})
FAILED: Final = frozenset({"STATE_FAILED", "STATE_INVALID"})


class SafeContracts(Protocol):
    """The contracts that a Safe's owner signs for."""

    @property
    def chain_id(self) -> int:
        """The chain."""

    @property
    def safe_factory(self) -> Address:
        """The factory of Safes."""

    @property
    def safe_factory_name(self) -> str:
        """The name of the factory's domain."""

    @property
    def multi_send(self) -> Address:
        """The contract that bundles calls."""

    @property
    def conditional_tokens(self) -> Address:
        """The contract that holds all outcome tokens."""


class RelayerClient:
    """One owner at the relayer, authenticated by trading credentials.

    A signed transaction has one nonce, so that a request may be sent again: it is carried out once.
    """

    def __init__(
        self,
        http: HttpClient,
        owner: AuthenticatedClient,
        contracts: SafeContracts,
        safe: Address,
        *,
        poll_s: float = POLL_S,
    ) -> None:
        self.http = http
        self.owner = owner
        self._contracts = contracts
        self.chain_id = contracts.chain_id
        self._poll_s = poll_s
        self.safe = safe

    async def is_deployed(self) -> bool:
        """Return whether the owner's Safe exists."""
        answer = await self.http.get("/deployed", address=checksum_address(self.safe))
        return bool(answer["deployed"])

    async def create_safe(self) -> Address:
        """Have the owner's Safe deployed, and return its address; one that exists stays as it is."""
        if await self.is_deployed():
            return self.safe
        contracts, signer = self._contracts, self.owner.signer
        typed = new_safe_data(
            contracts.chain_id, contracts.safe_factory, contracts.safe_factory_name
        )
        body = {
            "type": "SAFE-CREATE",
            "from": checksum_address(signer.address),
            "to": checksum_address(contracts.safe_factory),
            "proxyWallet": checksum_address(self.safe),
            "data": "0x",
            "signature": "0x" + (await signer.sign_typed(typed)).hex(),
            "signatureParams": {
                "paymentToken": ZERO_ADDRESS,
                "payment": "0",
                "paymentReceiver": ZERO_ADDRESS,
            },
        }
        await self.wait_until_mined(await self.post("/submit", body))
        return self.safe

    async def execute(self, calls: Sequence[InnerCall]) -> str:
        """Make calls from the Safe, and return the hash of the transaction once it is in a block."""
        return await self.wait_until_mined(await self.submit(calls))

    async def submit(self, calls: Sequence[InnerCall]) -> Any:
        """Sign calls of the Safe, bundled when there are several, and return the relayer's acceptance."""
        if len(calls) == 1:
            to, calldata, operation = calls[0].to, calls[0].calldata, OPERATION_CALL
        else:
            to, calldata = self._contracts.multi_send, encode_multi_send(calls)
            operation = OPERATION_DELEGATECALL
        body = await self._safe_body(to, calldata, operation)
        return await self.post("/submit", body)

    async def operate(self, operation: str, calldata: bytes) -> Any:
        """Have the Safe redeem or merge at the conditional tokens, and return the answer."""
        tokens = self._contracts.conditional_tokens
        body = await self._safe_body(tokens, calldata, OPERATION_CALL)
        return await self.post(f"/operations/{operation}", body)

    async def _safe_body(self, to: Address, calldata: bytes, operation: int) -> dict[str, Any]:
        signer = self.owner.signer
        nonce = await self.http.get("/nonce", address=signer.address, type="SAFE")
        call = SafeCall(self.safe, to, calldata, int(nonce["nonce"]), operation)
        signature = await signer.sign_typed(safe_tx_data(self.chain_id, call))
        return {
            "type": "SAFE",
            "from": checksum_address(signer.address),
            "to": checksum_address(to),
            "proxyWallet": checksum_address(self.safe),
            "data": "0x" + calldata.hex(),
            "nonce": nonce["nonce"],
            "signature": "0x" + signature.hex(),
            "signatureParams": {
                "operation": str(operation),
                "safeTxnGas": "0",
                "baseGas": "0",
                "gasPrice": "0",
                "gasToken": ZERO_ADDRESS,
                "refundReceiver": ZERO_ADDRESS,
            },
            "metadata": "",
        }

    async def post(self, path: str, body: object) -> Any:
        """Return the answer to a body, authenticated by the owner's key."""
        raw = msgspec.json.encode(body)
        headers = self.owner.l2_headers("POST", path, raw)
        return await self.http.send("POST", path, raw, headers, is_repeatable=True)

    async def wait_until_mined(self, answer: Any) -> str:
        """Return the hash of an accepted transaction once it is in a block."""

        async def fetch_hash() -> str | None:
            found = await self.http.get("/transaction", id=answer["transactionID"])
            state = found[0]["state"] if found else "STATE_NEW"
            if state in FAILED:
                raise ApiRefused("POST /submit", 200, str(found[0]["failureReason"]))
            return str(found[0]["transactionHash"]) if state in DONE else None

        return await wait_for("the relayer's transaction", fetch_hash, poll_s=self._poll_s)
