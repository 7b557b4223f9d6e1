"""Parsing of the bodies that creators send."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from foretell.domain.creation.plan import PlanTx
from foretell.domain.creation.request import Envelope
from foretell.domain.creation.sports_markets import SPORTS_MARKETS_MAX
from foretell.domain.errors.families import FieldProblem, InvalidFields
from foretell.domain.errors.http import MalformedBody
from foretell.domain.values.document_fields import Fields
from foretell.domain.values.eip712 import SIGNATURE_BYTES
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.domain.values.strict_json import parse_json

REQUEST_ID_CHARS_MAX: Final = 64
ITEM_ID_CHARS_MAX: Final = 64
TXS_MAX: Final = 2 * SPORTS_MARKETS_MAX + 2
"""The hashes of the longest plans: a question and a metadata update of each market, and approvals."""
SIGNATURE_BYTES_MAX: Final = 2 * SIGNATURE_BYTES


class AuthRequest(NamedTuple):
    """A request for a challenge."""

    creator: Address
    chain_id: int
    payload_hash: Bytes32


class SentTxs(NamedTuple):
    """The transaction hashes that a creator sends for a request."""

    request_id: str
    creator: Address
    txs: tuple[PlanTx, ...]


def parse_auth_request(raw: bytes) -> AuthRequest:
    """Return the request for a challenge in a body of `POST /prepare-auth`."""
    fields = Fields(_object(raw, "body"))
    parsed = AuthRequest(
        fields.address("creator"), fields.integer("chainId") or 0, fields.word("payloadHash")
    )
    fields.check()
    return parsed


def parse_envelope(raw: bytes) -> Envelope:
    """Return the signed challenge in the `auth` part of a preparation."""
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


def parse_sent_txs(raw: bytes, *, may_omit_txs: bool) -> SentTxs:
    """Return the hashes in a body, none if it omits them and may do so."""
    fields = Fields(_object(raw, "body"))
    has_none = may_omit_txs and not fields.has("txs")
    entries = [] if has_none else fields.entries("txs", TXS_MAX) or []
    sent = SentTxs(
        fields.text("requestId", REQUEST_ID_CHARS_MAX),
        fields.address("creator"),
        tuple(_plan_tx(fields, index, entry) for index, entry in enumerate(entries)),
    )
    fields.check()
    return sent


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
