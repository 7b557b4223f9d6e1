"""The worker's words in and out: what clients send, typed, and requests as clients read them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from foretell.domain.creation.plan import PlanTx
from foretell.domain.creation.request import ANSWER_BY_STATUS, Envelope, RequestStatus
from foretell.domain.errors.families import FieldProblem, InvalidFields
from foretell.domain.errors.http import MalformedBody
from foretell.domain.values.document_fields import Fields
from foretell.domain.values.eip712 import SIGNATURE_BYTES
from foretell.domain.values.hexadecimal import Address, Bytes32, checksum_address
from foretell.domain.values.strict_json import parse_json
from foretell.store.creation.requests import CreationRequest

REQUEST_ID_CHARS_MAX: Final = 64
ITEM_ID_CHARS_MAX: Final = 64
TXS_MAX: Final = 600
SIGNATURE_BYTES_MAX: Final = 2 * SIGNATURE_BYTES
ANSWERED_IN_FULL: Final = frozenset(
    {RequestStatus.METADATA_UPDATE_PENDING, RequestStatus.FINALIZED}
)


class AuthRequest(NamedTuple):
    """What a challenge is asked for."""

    creator: Address
    chain_id: int
    payload_hash: Bytes32


class SentTxs(NamedTuple):
    """The hashes that a creator sends for a request."""

    request_id: str
    creator: Address
    txs: tuple[PlanTx, ...]


def parse_auth_request(raw: bytes) -> AuthRequest:
    """Return what `POST /prepare-auth` asks for."""
    fields = Fields(_object(raw, "body"))
    wish = AuthRequest(
        fields.address("creator"), fields.integer("chainId") or 0, fields.word("payloadHash")
    )
    fields.check()
    return wish


def parse_envelope(raw: bytes) -> Envelope:
    """Return the signed challenge that the `auth` part of a preparation holds."""
    fields = Fields(_object(raw, "auth"), "auth/")
    envelope = Envelope(
        request_id=fields.text("requestId", REQUEST_ID_CHARS_MAX),
        nonce=fields.word("nonce"),
        expires_at_ms=fields.integer("expiresAt") or 0,
        payload_hash=fields.word("payloadHash"),
        signature=fields.raw_bytes("signature", SIGNATURE_BYTES_MAX),
    )
    fields.check()
    return envelope


def parse_sent_txs(raw: bytes, *, may_be_silent: bool) -> SentTxs:
    """Return the hashes that a body sends; one that may be silent need not have any."""
    fields = Fields(_object(raw, "body"))
    is_silent = may_be_silent and not fields.has("txs")
    entries = [] if is_silent else fields.entries("txs", TXS_MAX) or []
    sent = SentTxs(
        fields.text("requestId", REQUEST_ID_CHARS_MAX),
        fields.address("creator"),
        tuple(_plan_tx(fields, index, entry) for index, entry in enumerate(entries)),
    )
    fields.check()
    return sent


def request_document(request: CreationRequest) -> dict[str, Any]:
    """Return the record of a request; what was prepared is there once it is prepared."""
    challenge = request.challenge
    record = {
        "requestId": request.request_id,
        "payloadHash": challenge.payload_hash,
        "status": request.status,
        "creator": checksum_address(request.creator),
        "chainId": challenge.chain_id,
        "expiresAt": challenge.expires_at_ms,
        "updatedAt": request.updated_at_ms,
        "errorMessage": request.error_message,
        "txs": tx_documents([tx.plan_tx for tx in request.txs]),
        "registerResults": request.register_results,
        "metadataUpdates": request.metadata_updates,
        "metadataUpdateTxPlan": [item.document() for item in request.metadata_plan],
    }
    if request.plan is None:
        return record
    return record | {
        "prepared": {
            "requestId": request.request_id,
            "chainId": challenge.chain_id,
            "creator": checksum_address(request.creator),
            "txPlan": [item.document() for item in request.plan],
        }
    }


def prepare_answer(request: CreationRequest) -> dict[str, Any]:
    """Return what `POST /prepare` says of a request."""
    return {
        "requestId": request.request_id,
        "chainId": request.challenge.chain_id,
        "creator": checksum_address(request.creator),
        "status": ANSWER_BY_STATUS[request.status],
    }


def confirm_answer(request: CreationRequest) -> dict[str, Any]:
    """Return what `POST /tx-confirm` says of a request: every hash that is kept for it."""
    return {
        "requestId": request.request_id,
        "status": ANSWER_BY_STATUS[request.status],
        "confirmedTxs": tx_documents([tx.plan_tx for tx in request.txs]),
    }


def finalize_answer(request: CreationRequest) -> dict[str, Any]:
    """Return which of the three shapes of `POST /finalize` fits a request."""
    answer: dict[str, Any] = {
        "requestId": request.request_id,
        "status": ANSWER_BY_STATUS[request.status],
    }
    if request.status not in ANSWERED_IN_FULL:
        return answer
    answer |= {
        "creatorTxCount": sum(tx.is_verified for tx in request.txs),
        "registerResults": request.register_results,
        "metadataUpdates": request.metadata_updates,
    }
    if request.status is RequestStatus.METADATA_UPDATE_PENDING:
        answer["metadataUpdateTxPlan"] = [item.document() for item in request.metadata_plan]
    return answer


def tx_documents(txs: Sequence[PlanTx]) -> list[dict[str, str]]:
    """Return items and their hashes in the words of the wire."""
    return [{"id": tx.item_id, "hash": tx.tx_hash} for tx in txs]


def _plan_tx(fields: Fields, index: int, entry: Any) -> PlanTx:
    inner = fields.inside(f"txs/{index}", entry if isinstance(entry, dict) else {})
    return PlanTx(inner.text("id", ITEM_ID_CHARS_MAX), inner.word("hash"))


def _object(raw: bytes, name: str) -> Mapping[str, Any]:
    try:
        parsed = parse_json(raw)
    except MalformedBody as error:
        raise InvalidFields([FieldProblem(name, f"must be strict JSON: {error}")]) from error
    if not isinstance(parsed, dict):
        raise InvalidFields([FieldProblem(name, "must be a JSON object")])
    return parsed
