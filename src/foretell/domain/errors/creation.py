"""Refusals of market creation.

Their place in the tree of refusals: see `families`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from foretell.domain.errors.families import Conflict, NotFound, Unauthenticated, Unavailable


class AuthInvalid(Unauthenticated):
    """The signed challenge is not the issued one, or another address signed it."""


class AuthExpired(Unauthenticated):
    """The challenge has expired."""

    def __init__(self, expires_at_ms: int, now_ms: int) -> None:
        super().__init__(
            f"the challenge expired at {expires_at_ms} ms, and it is now {now_ms} ms; request a new one with"
            " POST /prepare-auth"
        )


class CreatorNotWhitelisted(Conflict):
    """The creator has not registered a proposer whitelist on the chain."""

    def __init__(self, creator: str) -> None:
        super().__init__(
            f"{creator} has registered no proposer whitelist; register one with the"
            " ProposerWhitelistRegistry",
            creator=creator,
        )


class CreatorUnderfunded(Conflict):
    """The creator holds less collateral than its plan costs."""

    def __init__(self, creator: str, cost: str, held: str) -> None:
        super().__init__(
            f"the plan costs {cost} collateral, and {creator} holds {held}; transfer the rest to it",
            creator=creator,
            cost=cost,
            held=held,
        )


class RequestNotFound(NotFound):
    """The creation request does not exist, or belongs to another creator."""

    def __init__(self, request_id: str) -> None:
        super().__init__(f"this creator has no request {request_id} on this chain")


class ChallengeUsed(Conflict):
    """The challenge was used before, for another payload, other images, or with another envelope."""

    def __init__(self, request_id: str) -> None:
        super().__init__(
            f"the challenge of {request_id} was used before with another payload, envelope or image;"
            " send exactly the same again, or request a new one with POST /prepare-auth"
        )


class TooManyPreparations(Unavailable):
    """A creator, or a client address, has as many preparations as may run at once; nothing was done."""

    def __init__(self, whose: str, count_max: int, bytes_max: int, retry_after_s: int) -> None:
        super().__init__(
            f"this {whose} may have at most {count_max} requests in prepare_running, which hold at most {bytes_max}"
            " bytes; send this one again when one of them has ended, in"
            f" {retry_after_s} s at the latest",
            retry_after_s=retry_after_s,
        )


class TooManyUnpaid(Unavailable):
    """A creator, or a client address, has as many plans of a day as may wait for their transactions; nothing was done."""

    def __init__(self, whose: str, count_max: int, retry_after_s: int) -> None:
        super().__init__(
            f"this {whose} may have at most {count_max} requests of a day in prepared; finalize one of them, or send this"
            f" one again in {retry_after_s} s",
            retry_after_s=retry_after_s,
        )


class PreparationsBusy(Unavailable):
    """The preparations of all creators are as many as may run at once; nothing was done."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            "as many requests are in prepare_running as may be; send this one again when one of them has ended,"
            f" in {retry_after_s} s at the latest, or register a proposer whitelist first",
            retry_after_s=retry_after_s,
        )


class ImagesBusy(Unavailable):
    """Images of other requests are decoded first, or as many of the client's own wait as may; nothing was done."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            "too many images wait to be decoded; send this request again after a pause",
            retry_after_s=retry_after_s,
        )


class AlreadyInitialized(Conflict):
    """Markets of the payload exist already, with other terms, or another request is creating them."""

    def __init__(self, duplicates: Sequence[Mapping[str, Any]], why: str) -> None:
        slugs = ", ".join(str(duplicate["slug"]) for duplicate in duplicates)
        super().__init__(f"{slugs}: {why}", duplicates=list(duplicates))


class TxInvalid(Conflict):
    """Transactions do not match the plan; the details list them with reasons."""

    def __init__(self, txs: Sequence[Mapping[str, Any]]) -> None:
        reasons = "; ".join(f"{tx['id']}: {tx['reason']}" for tx in txs)
        super().__init__(f"transactions do not match the plan: {reasons}", txs=list(txs))


class TxPending(Conflict):
    """Transactions of the plan are not mined yet."""

    def __init__(self, txs: Sequence[Mapping[str, Any]]) -> None:
        ids = ", ".join(str(tx["id"]) for tx in txs)
        super().__init__(f"transactions have no receipt yet: {ids}", txs=list(txs))


class RegistrationPending(Unavailable):
    """The registration of tokens is not mined yet."""

    def __init__(self, condition_ids: Sequence[str]) -> None:
        super().__init__(
            f"the registration of tokens is not final yet, for the conditions {', '.join(condition_ids)}"
        )


class RegistrationBlocked(Unavailable):
    """The exchange registers no tokens for this registrar now, whatever tokens they are."""

    def __init__(self, condition_id: str, why: str) -> None:
        super().__init__(f"the tokens of {condition_id} cannot be registered at present: {why}")


class RegistrationRefused(Conflict):
    """The exchange refuses the tokens of a condition."""

    def __init__(self, condition_id: str, why: str) -> None:
        super().__init__(f"the tokens of {condition_id} cannot be registered: {why}")
