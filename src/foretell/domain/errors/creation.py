"""The refusals of market creation.

They belong to the tree at the top of `errors.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from foretell.domain.errors.families import Conflict, NotFound, Unauthenticated, Unavailable


class AuthInvalid(Unauthenticated):
    """The signed challenge is not the one that was issued, or somebody else signed it."""


class AuthExpired(Unauthenticated):
    """The challenge was not used in time."""

    def __init__(self, expires_at_ms: int, now_ms: int) -> None:
        super().__init__(f"the challenge expired at {expires_at_ms}, and it is now {now_ms}")


class TooManyChallenges(Unavailable):
    """So many challenges wait for a signature that there is no room for another one."""

    def __init__(self, whose: str, most: int) -> None:
        super().__init__(
            f"{most} challenges of {whose} wait for a signature already; sign one, or wait until"
            " one expires"
        )


class CreatorNotWhitelisted(Conflict):
    """The creator has no proposer whitelist on the chain."""

    def __init__(self, creator: str) -> None:
        super().__init__(f"{creator} has registered no proposer whitelist", creator=creator)


class RequestNotFound(NotFound):
    """No creation request is meant, or it is another creator's."""

    def __init__(self, request_id: str) -> None:
        super().__init__(f"no request {request_id} of this creator on this chain")


class ChallengeUsed(Conflict):
    """The challenge was used before, for another payload or with another envelope."""

    def __init__(self, request_id: str) -> None:
        super().__init__(f"the challenge of {request_id} was used with another payload or envelope")


class AlreadyInitialized(Conflict):
    """Markets of the payload are there already, or somebody else is making them."""

    def __init__(self, duplicates: Sequence[Mapping[str, Any]], why: str) -> None:
        slugs = ", ".join(str(duplicate["slug"]) for duplicate in duplicates)
        super().__init__(f"{slugs}: {why}", duplicates=list(duplicates))


class TxInvalid(Conflict):
    """Transactions are not those of the plan; the details say which and why."""

    def __init__(self, txs: Sequence[Mapping[str, Any]]) -> None:
        told = "; ".join(f"{tx['id']}: {tx['reason']}" for tx in txs)
        super().__init__(f"transactions do not fit the plan: {told}", txs=list(txs))


class TxPending(Conflict):
    """Transactions of the plan are not in a block yet."""

    def __init__(self, txs: Sequence[Mapping[str, Any]]) -> None:
        told = ", ".join(str(tx["id"]) for tx in txs)
        super().__init__(f"transactions have no receipt yet: {told}", txs=list(txs))


class RegistrationPending(Unavailable):
    """The registration of tokens is on its way to the chain."""

    def __init__(self, condition_ids: Sequence[str]) -> None:
        super().__init__(f"tokens are being registered: {', '.join(condition_ids)}")


class RegistrationRefused(Conflict):
    """The exchange does not take the tokens of a condition."""

    def __init__(self, condition_id: str, why: str) -> None:
        super().__init__(f"the tokens of {condition_id} cannot be registered: {why}")
