"""Rendering of requests and challenges as responses."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import UNSET

from foretell.creation import responses
from foretell.domain.creation.plan import PlanItem
from foretell.domain.creation.request import (
    ANSWER_BY_STATUS,
    CHALLENGE_FIELDS,
    CHALLENGE_NAME,
    CHALLENGE_TYPE,
    CHALLENGE_VERSION,
    Challenge,
    RequestStatus,
)
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, checksum_address
from foretell.store.creation.documents import StoredMetadataUpdate, StoredRegistration
from foretell.store.creation.requests import CreationRequest, RequestTx

ANSWERED_IN_FULL: Final = frozenset(
    {RequestStatus.METADATA_UPDATE_PENDING, RequestStatus.FINALIZED}
)


def render_challenge(challenge: Challenge) -> responses.ChallengeResponse:
    """Return the answer of `POST /prepare-auth`: all that a wallet needs to sign."""
    return responses.ChallengeResponse(
        request_id=challenge.request_id,
        nonce=challenge.nonce,
        expires_at=challenge.expires_at_ms,
        creator=checksum_address(challenge.creator),
        chain_id=challenge.chain_id,
        payload_hash=challenge.payload_hash,
        domain=responses.ChallengeDomain(
            name=CHALLENGE_NAME, version=CHALLENGE_VERSION, verifying_contract=ZERO_ADDRESS
        ),
        primary_type=CHALLENGE_TYPE,
        types={
            CHALLENGE_TYPE: [
                responses.TypeField(name=name, type=kind) for name, kind in CHALLENGE_FIELDS
            ]
        },
    )


def render_prepare(request: CreationRequest) -> responses.OpenedResponse:
    """Return the answer of `POST /prepare`."""
    return responses.OpenedResponse(
        request_id=request.request_id,
        chain_id=request.challenge.chain_id,
        creator=checksum_address(request.creator),
        status=ANSWER_BY_STATUS[request.status],
    )


def render_request(
    request: CreationRequest, steps: list[responses.RequestStep]
) -> responses.CreationRecord:
    """Return the record of a request, with its plan once it is prepared."""
    challenge = request.challenge
    return responses.CreationRecord(
        request_id=request.request_id,
        payload_hash=challenge.payload_hash,
        status=request.status,
        creator=checksum_address(request.creator),
        chain_id=challenge.chain_id,
        expires_at=challenge.expires_at_ms,
        updated_at=request.updated_at_ms,
        error_message=request.error_message,
        txs=_render_txs(request.txs),
        register_results=_render_registrations(request.register_results),
        metadata_updates=_render_updates(request.metadata_updates),
        metadata_update_tx_plan=_render_plan(request.metadata_plan),
        steps=steps,
        prepared=UNSET if request.plan is None else _render_prepared(request, request.plan),
    )


def render_confirm(request: CreationRequest) -> responses.Confirmed:
    """Return the answer of `POST /tx-confirm`: every stored hash of a request."""
    return responses.Confirmed(
        request_id=request.request_id,
        status=ANSWER_BY_STATUS[request.status],
        confirmed_txs=_render_txs(request.txs),
    )


def render_finalize(request: CreationRequest) -> responses.Finalized:
    """Return the answer of `POST /finalize`, with the results once the transactions are verified."""
    status = ANSWER_BY_STATUS[request.status]
    if request.status not in ANSWERED_IN_FULL:
        return responses.Finalized(request_id=request.request_id, status=status)
    is_pending = request.status is RequestStatus.METADATA_UPDATE_PENDING
    return responses.Finalized(
        request_id=request.request_id,
        status=status,
        creator_tx_count=sum(tx.is_verified for tx in request.txs),
        register_results=_render_registrations(request.register_results),
        metadata_updates=_render_updates(request.metadata_updates),
        metadata_update_tx_plan=_render_plan(request.metadata_plan) if is_pending else UNSET,
    )


def _render_prepared(request: CreationRequest, plan: Sequence[PlanItem]) -> responses.Prepared:
    return responses.Prepared(
        request_id=request.request_id,
        chain_id=request.challenge.chain_id,
        creator=checksum_address(request.creator),
        tx_plan=_render_plan(plan),
    )


def _render_plan(plan: Iterable[PlanItem]) -> list[responses.PlanItemResponse]:
    return [
        responses.PlanItemResponse(
            id=item.item_id,
            to=checksum_address(item.target),
            value=str(item.value_wei),
            data="0x" + item.calldata.hex(),
            description=item.description,
            market_key=UNSET if item.market_key is None else item.market_key,
        )
        for item in plan
    ]


def _render_txs(txs: Iterable[RequestTx]) -> list[responses.Tx]:
    return [responses.Tx(id=tx.item_id, hash=tx.tx_hash) for tx in txs]


def _render_registrations(
    registrations: Iterable[StoredRegistration],
) -> list[responses.RegisterResult]:
    return [
        responses.RegisterResult(
            key=each.key,
            condition_id=each.condition_id,
            exchange=each.exchange,
            token_a=each.token_a,
            token_b=each.token_b,
            already_registered=each.already_registered,
            tx_hash=each.tx_hash,
        )
        for each in registrations
    ]


def _render_updates(updates: Iterable[StoredMetadataUpdate]) -> list[responses.MetadataUpdate]:
    return [
        responses.MetadataUpdate(
            key=each.key,
            condition_id=each.condition_id,
            metadata_tx_id=each.metadata_tx_id,
            metadata_uri=each.metadata_uri,
            update_tx_hash=each.update_tx_hash,
        )
        for each in updates
    ]
