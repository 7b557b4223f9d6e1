"""The tree of all refusals.

ForetellError
├── InvalidInput      the request breaks a rule that needs no state         (a 400)
├── Unauthenticated   the sender is not known                               (a 401)
├── NotFound          what the request names does not exist                 (a 404)
├── Conflict          the request does not fit the present state            (a 409)
├── Unavailable       it cannot be done now; nothing was done               (a 503)
└── Upstream          the chain or the storage refused, or did not answer   (a 502)

A refusal has the same name everywhere: class `OrderExpired`, wire code `order_expired`, contract
error `OrderExpired`. Each product's `refusals` maps classes to statuses and bodies. A message says
what was seen and what was wanted, never a secret.

This module has the families and what several products raise; the other modules of this package have
the refusals of one area each.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self


class Arguments(NamedTuple):
    """What the constructor of a refusal was called with."""

    positional: Sequence[Any]
    named: Mapping[str, Any]


class ForetellError(Exception):
    """A failure that is reported to a client or an operator.

    A `definite` one changed nothing. Otherwise the outcome is unknown, and the request may be sent
    again under the same identity. A `resumed` one goes on where it was when the request is sent again. `cure`
    says what a client can do about an order refused like this.
    """

    definite: ClassVar[bool] = True
    resumed: ClassVar[bool] = False
    cure: ClassVar[str | None] = None
    arguments: Arguments

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: Mapping[str, Any] = details

    def __new__(cls, *positional: Any, **named: Any) -> Self:
        """Keep the constructor's arguments, of which another process makes an equal refusal."""
        refusal = super().__new__(cls, *positional)
        refusal.arguments = Arguments(positional, named)
        return refusal

    @property
    def retry_after_s(self) -> int | None:
        """The seconds after which a client should try again, None when it need not."""
        return self.details.get("retry_after_s")

    @property
    def code(self) -> str:
        """The code on the wire: the class name in snake case."""
        return code_of(type(self))


def code_of(kind: type[ForetellError]) -> str:
    """Return the code of a class of refusals: its name in snake case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.__name__).lower()


class InvalidInput(ForetellError):
    """The request breaks a rule that needs no state to check."""


class Unauthenticated(ForetellError):
    """The sender is not known."""


class NotFound(ForetellError):
    """What the request names does not exist."""


class Conflict(ForetellError):
    """The request does not fit the present state of what it names."""


class Unavailable(ForetellError):
    """The request cannot be served now, and nothing was done."""


class Upstream(ForetellError):
    """The chain or the storage refused, or did not answer."""


class MalformedHex(InvalidInput):
    """A hex field is malformed."""

    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"{field} must be {wanted}", field=field)


class MalformedAmount(InvalidInput):
    """An amount is malformed or out of range."""

    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"{field} must be {wanted}", field=field)


class MalformedSignature(InvalidInput):
    """The bytes are no possible signature."""

    cure = "send 65 bytes r, s, v with the lower s"

    def __init__(self, wanted: str) -> None:
        super().__init__(f"signature must be {wanted}", field="signature")


class IllegalTransition(Conflict):
    """The status does not allow the transition."""

    def __init__(self, thing: str, status: str, trigger: str) -> None:
        super().__init__(f"{thing} is {status} and cannot {trigger}", status=status)


class FieldProblem(NamedTuple):
    """A problem of one field, named by its path, such as `categories/2/slug`."""

    field: str
    message: str


class InvalidFields(InvalidInput):
    """Fields are malformed; all problems are reported at once."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        assert problems
        more = f"; the details have all {len(problems)} problems" if len(problems) > 1 else ""
        super().__init__(
            f"{problems[0].field} {problems[0].message}{more}",
            problems=[problem._asdict() for problem in problems],
        )
