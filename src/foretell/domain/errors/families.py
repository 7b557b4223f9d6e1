"""The tree of every refusal that anybody may be told of.

ForetellError
├── InvalidInput      what was sent breaks a rule of its own shape          (a 400)
├── Unauthenticated   nobody whom we know sent it                           (a 401)
├── NotFound          what it names is not here                             (a 404)
├── Conflict          it does not fit the present state of a thing          (a 409)
├── Unavailable       we cannot do it now; nothing was done                 (a 503)
└── Upstream          the chain or the storage said no, or did not answer   (a 502)

A class has the same name everywhere: `OrderExpired` here, `order_expired` on the wire, the
contract error `OrderExpired` on chain. Which status and body a class becomes is known to
`edge/errors.py` alone. Messages say what was seen and what was wanted, never a secret.

Here stand the families and what every room may refuse; what one room refuses stands beside it, in
`request_errors`, `matching_errors`, `trading_errors`, `creation_errors`, `relayer_errors`,
`chain_errors`, `storage_errors` and `command_errors`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self


class Arguments(NamedTuple):
    """What the constructor of a refusal was called with."""

    positional: Sequence[Any]
    named: Mapping[str, Any]


class ForetellError(Exception):
    """Anything that a client, an operator or a creator may be told of.

    `definite` says that nothing happened: an error that is not definite leaves the outcome
    unknown, and only such a request may be sent again, under the same identity.
    """

    definite: ClassVar[bool] = True
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
    def code(self) -> str:
        """The machine's word for it: the class name in snake case."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()


class InvalidInput(ForetellError):
    """What was sent breaks a rule that needs no state to check."""


class Unauthenticated(ForetellError):
    """Nobody whom we know sent it."""


class NotFound(ForetellError):
    """What it names is not here."""


class Conflict(ForetellError):
    """It does not fit the present state of what it names."""


class Unavailable(ForetellError):
    """It cannot be done now, and nothing was done."""


class Upstream(ForetellError):
    """The chain or a storage network refused, or did not answer."""


class MalformedHex(InvalidInput):
    """A hex field does not spell what it should."""

    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"{field} must be {wanted}", field=field)


class MalformedAmount(InvalidInput):
    """An amount is not what its field needs."""

    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"{field} must be {wanted}", field=field)


class MalformedSignature(InvalidInput):
    """A signature is not one that anybody could have made."""

    def __init__(self, wanted: str) -> None:
        super().__init__(f"signature must be {wanted}", field="signature")


class IllegalTransition(Conflict):
    """A thing with a life cannot move that way from where it is."""

    def __init__(self, thing: str, status: str, trigger: str) -> None:
        super().__init__(f"{thing} is {status} and cannot {trigger}", status=status)


class FieldProblem(NamedTuple):
    """What is wrong with one field; the field is named as a path, such as `categories/2/slug`."""

    field: str
    message: str


class InvalidFields(InvalidInput):
    """Fields break rules of their own shape; all of them are told at once."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        assert problems
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        super().__init__(
            f"{problems[0].field} {problems[0].message}{more}",
            problems=[problem._asdict() for problem in problems],
        )
