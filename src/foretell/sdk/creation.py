"""The client of a creator: signs the challenge, sends the planned transactions, finalizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from foretell.domain.creation.request import Challenge
from foretell.domain.errors.command import CreationEnded
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.hexadecimal import (
    Address,
    Bytes32,
    checksum_address,
    keccak256,
    parse_address,
    parse_bytes32,
    word_of,
)
from foretell.sdk.http import POLL_S, HttpClient, wait_for
from foretell.sdk.signing.signers import Signer
from foretell.sdk.signing.typed_data import challenge_data

PREPARED: Final = "prepared"
FAILED: Final = "failed"
UNFINISHED: Final = "finalize_in_progress"


class MinedTx(Protocol):
    """A transaction that is in a block."""

    @property
    def tx_hash(self) -> Bytes32:
        """The hash of the transaction."""


class TxSender(Protocol):
    """An account that sends transactions and waits for them."""

    @property
    def address(self) -> Address:
        """The address that sends."""

    async def call_all(self, calls: Sequence[ContractCall]) -> Sequence[MinedTx]:
        """Send calls and return once all are in blocks; one that reverts raises."""


@dataclass(slots=True)
class CreatorClient:
    """One creator at market creation.

    A payload is serialized once: the same string is hashed and sent.
    """

    http: HttpClient
    caller: TxSender
    signer: Signer
    chain_id: int
    poll_s: float = POLL_S

    async def open_request(self, payload: str) -> Challenge:
        """Open a request, and return its challenge, which is bound to the payload's hash."""
        body = {
            "creator": checksum_address(self.caller.address),
            "chainId": self.chain_id,
            "payloadHash": word_of(keccak256(payload.encode())),
        }
        answer = await self.http.send("POST", "/prepare-auth", msgspec.json.encode(body))
        return challenge_of(answer)

    async def prepare(
        self, challenge: Challenge, payload: str, images: Mapping[str, tuple[str, bytes, str]]
    ) -> Any:
        """Send the signed challenge with the payload and its images."""
        signature = await self.signer.sign_typed(challenge_data(challenge))
        envelope = {
            "requestId": challenge.request_id,
            "nonce": challenge.nonce,
            "expiresAt": challenge.expires_at_ms,
            "payloadHash": challenge.payload_hash,
            "signature": "0x" + signature.hex(),
        }
        fields = {"payload": payload, "auth": msgspec.json.encode(envelope).decode()}
        return await self.http.upload("/prepare", fields, images)

    async def wait_for_plan(self, request_id: str) -> Sequence[Any]:
        """Return the transaction plan when it is ready."""

        async def fetch_plan() -> Sequence[Any] | None:
            answer = await self.http.get("/pending", requestId=request_id)
            request = answer["request"]
            if request["status"] == FAILED:
                raise CreationEnded(request_id, str(request["errorMessage"]))
            plan = request.get("prepared")
            return None if plan is None else list(plan["txPlan"])

        return await wait_for("the transaction plan", fetch_plan, poll_s=self.poll_s)

    async def execute(self, plan: Sequence[Any]) -> list[dict[str, str]]:
        """Send the items of a plan from the creator's wallet, one after the other."""
        sent = []
        for item in plan:
            call = ContractCall(
                parse_address(item["to"]),
                bytes.fromhex(item["data"][2:]),
                value_wei=int(item["value"]),
            )
            receipts = await self.caller.call_all([call])
            sent.append({"id": item["id"], "hash": receipts[0].tx_hash})
        return sent

    async def confirm(self, request_id: str, txs: Sequence[Mapping[str, str]]) -> Any:
        """Report the hashes of sent transactions."""
        return await self._post("/tx-confirm", request_id, txs)

    async def status(self, request_id: str) -> str:
        """Return the status of a request."""
        answer = await self.http.get("/pending", requestId=request_id)
        return str(answer["request"]["status"])

    async def finalize(self, request_id: str, txs: Sequence[Mapping[str, str]] = ()) -> Any:
        """Have the transactions checked, and return the answer when the check is over.

        The hashes given here are those that are checked, whatever anyone confirmed before.
        """

        async def fetch_finalized() -> Any:
            answer = await self._post("/finalize", request_id, txs)
            return None if answer["status"] == UNFINISHED else answer

        return await wait_for("finalization", fetch_finalized, poll_s=self.poll_s)

    async def _post(self, path: str, request_id: str, txs: Sequence[Mapping[str, str]]) -> Any:
        body = {
            "requestId": request_id,
            "creator": checksum_address(self.caller.address),
            "txs": list(txs),
        }
        raw = msgspec.json.encode(body)
        return await self.http.send("POST", path, raw, is_repeatable=True)


def challenge_of(answer: Mapping[str, Any]) -> Challenge:
    """Return the challenge in an answer to `POST /prepare-auth`."""
    return Challenge(
        request_id=answer["requestId"],
        creator=parse_address(answer["creator"]),
        payload_hash=parse_bytes32(answer["payloadHash"]),
        nonce=parse_bytes32(answer["nonce"]),
        expires_at_ms=answer["expiresAt"],
        chain_id=answer["chainId"],
    )
