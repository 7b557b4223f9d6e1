"""The steps of a request, in words that its creator can act on.

Each step says whether it is done, what it waits for, and until when the request waits. The worker stores the
cause of a wait; everything else follows from the request's status and hashes.
"""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from foretell.creation.context import CreationContext
from foretell.creation.responses import RequestStep
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.creation.plan import PlanItem
from foretell.domain.creation.request import RequestStatus
from foretell.domain.values.hexadecimal import checksum_address
from foretell.store.creation.requests import CreationRequest


class StepName(enum.StrEnum):
    """The steps in their order."""

    CHALLENGE = "challenge"
    PREPARATION = "preparation"
    WHITELIST = "whitelist"
    FUNDING = "funding"
    TRANSACTIONS = "transactions"
    CONFIRMATIONS = "confirmations"
    REGISTRATION = "registration"
    METADATA = "metadata"


DONE: Final = "done"
RUNNING: Final = "running"
WAITING: Final = "waiting"
OPEN: Final = "open"
FAILED: Final = "failed"

_DONE_WORDS: Final[Mapping[StepName, str]] = MappingProxyType(
    {
        StepName.CHALLENGE: "the challenge was signed",
        StepName.PREPARATION: "images and drafts are stored, and the chain was read",
        StepName.WHITELIST: "the creator has a proposer whitelist",
        StepName.FUNDING: "the creator has the collateral of the plan",
        StepName.TRANSACTIONS: "every transaction of the plan was sent and checked",
        StepName.CONFIRMATIONS: "the transactions have their confirmations",
        StepName.REGISTRATION: "the tokens are registered at the exchange",
        StepName.METADATA: "the metadata is on the chain, and the markets trade",
    }
)
_OPEN_WORDS: Final[Mapping[StepName, str]] = MappingProxyType(
    {
        StepName.CHALLENGE: "the challenge is to be signed",
        StepName.PREPARATION: "images, drafts and the plan are prepared after the signature",
        StepName.WHITELIST: "the creator's proposer whitelist is checked at the end of the preparation",
        StepName.FUNDING: "the plan is ready once the creator holds the collateral that it costs",
        StepName.TRANSACTIONS: "the creator sends the transactions of the plan",
        StepName.CONFIRMATIONS: "the transactions wait for their confirmations",
        StepName.REGISTRATION: "the tokens are registered at the exchange",
        StepName.METADATA: "the creator sets the metadata, and the markets open",
    }
)
_STEP_BY_WAIT: Final[Mapping[str, StepName]] = MappingProxyType(
    {
        "creator_not_whitelisted": StepName.WHITELIST,
        "creator_underfunded": StepName.FUNDING,
        "tx_pending": StepName.CONFIRMATIONS,
        "registration_pending": StepName.REGISTRATION,
        "registration_blocked": StepName.REGISTRATION,
    }
)
_NAMES: Final = tuple(StepName)


class _Present(NamedTuple):
    """The step that a request is at."""

    name: StepName
    state: str
    message: str
    until_ms: int | None = None
    waits_for: Sequence[str] = ()


def list_steps(context: CreationContext, request: CreationRequest) -> list[RequestStep]:
    """Return every step: those before the present one are done, those after it are open."""
    return list(_steps(_present(context, request)))


def _steps(present: _Present | None) -> Iterator[RequestStep]:
    at = len(_NAMES) if present is None else _NAMES.index(present.name)
    for place, name in enumerate(_NAMES):
        if present is not None and place == at:
            yield RequestStep(
                step=name,
                state=present.state,
                message=present.message,
                until=present.until_ms,
                **({"waits_for": list(present.waits_for)} if present.waits_for else {}),
            )
        else:
            words = _DONE_WORDS if place < at else _OPEN_WORDS
            yield RequestStep(step=name, state=DONE if place < at else OPEN, message=words[name])


def _present(context: CreationContext, request: CreationRequest) -> _Present | None:
    """Return the step that a request is at, None for a finalized one."""
    read = _PRESENT_BY_STATUS.get(request.status)
    return None if read is None else read(context, request)


def _unsigned(_: CreationContext, request: CreationRequest) -> _Present:
    words = "sign the challenge, and send it with the payload and the images to POST /prepare"
    return _Present(StepName.CHALLENGE, WAITING, words, request.challenge.expires_at_ms)


def _preparing(context: CreationContext, request: CreationRequest) -> _Present:
    deadline_ms = request.entered_at_ms + context.options.prepare_deadline_ms
    return _running(request, StepName.PREPARATION, deadline_ms, _whitelist_words(context, request))


def _whitelist_words(context: CreationContext, request: CreationRequest) -> str:
    registry = checksum_address(
        context.deployment.address(ContractName.PROPOSER_WHITELIST_REGISTRY)
    )
    return (
        f"{checksum_address(request.creator)} has no proposer whitelist: deploy one, and call"
        f" registerWhitelist of the ProposerWhitelistRegistry {registry} from that address"
    )


def _prepared(_: CreationContext, request: CreationRequest) -> _Present:
    return _to_send(request, StepName.TRANSACTIONS, request.plan or (), "prepared.txPlan")


def _finalizing(context: CreationContext, request: CreationRequest) -> _Present:
    deadline_ms = request.entered_at_ms + context.options.finalize_deadline_ms
    words = (
        f"the transactions of the plan wait for {context.options.confirmations} confirmations each;"
        " there is nothing to do"
    )
    return _running(request, StepName.CONFIRMATIONS, deadline_ms, words)


def _updating(_: CreationContext, request: CreationRequest) -> _Present:
    return _to_send(request, StepName.METADATA, request.metadata_plan, "metadataUpdateTxPlan")


def _failed(_: CreationContext, request: CreationRequest) -> _Present:
    message = f"{request.error_message or 'the request failed'}; start a new request"
    if request.plan is None:
        is_signed = request.signature is not None
        name = StepName.PREPARATION if is_signed else StepName.CHALLENGE
    else:
        name = StepName.METADATA if request.metadata_plan else StepName.TRANSACTIONS
    return _Present(name, FAILED, message)


_PRESENT_BY_STATUS: Final[
    Mapping[RequestStatus, Callable[[CreationContext, CreationRequest], _Present]]
] = MappingProxyType(
    {
        RequestStatus.AUTH_PENDING: _unsigned,
        RequestStatus.PREPARE_RUNNING: _preparing,
        RequestStatus.PREPARED: _prepared,
        RequestStatus.FINALIZE_RUNNING: _finalizing,
        RequestStatus.METADATA_UPDATE_PENDING: _updating,
        RequestStatus.FAILED: _failed,
    }
)


def _running(
    request: CreationRequest, first: StepName, deadline_ms: int, usual_words: str
) -> _Present:
    """Return the step at which background work is; the cause of a wait says which one that is.

    A wait that is the usual one of its step has `usual_words`; others have messages of their own.
    """
    wait = request.wait
    if wait is None:
        return _Present(first, RUNNING, "this is being done; poll again", deadline_ms)
    name = _STEP_BY_WAIT.get(wait.code, first)
    if name is StepName.FUNDING:
        message = wait.message
    elif name in {StepName.WHITELIST, StepName.CONFIRMATIONS} and wait.code in _STEP_BY_WAIT:
        message = usual_words
    else:
        message = f"{wait.message}; it is tried again, and there is nothing to do"
    return _Present(name, WAITING, message, wait.until_ms)


def _to_send(
    request: CreationRequest, name: StepName, plan: Sequence[PlanItem], place: str
) -> _Present:
    """Return the step at which the creator sends transactions, with the ids of those without a hash."""
    missing = [item.item_id for item in plan if item.item_id not in request.hash_by_id]
    if missing:
        words = (
            f"send {', '.join(missing)} of {place} from {checksum_address(request.creator)}, and"
            " report the hashes with POST /tx-confirm"
        )
    else:
        words = f"every item of {place} has a hash; call POST /finalize"
    return _Present(name, WAITING, words, None, missing)
