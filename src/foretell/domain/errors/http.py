"""The refusals that every HTTP surface shares: who asks, and how a request is spelled.

They belong to the tree at the top of `errors.py`.
"""

from collections.abc import Sequence

from foretell.domain.errors.families import InvalidInput, NotFound, Unauthenticated, Unavailable


class L1SignatureMismatch(Unauthenticated):
    """The wallet's signature is not one of the address over the headers."""

    def __init__(self, address: str) -> None:
        super().__init__(f"the signature was not made by {address} over these headers")


class L2SignatureMismatch(Unauthenticated):
    """The HMAC is not the secret's over this request; the details say what was signed here."""

    def __init__(self, message_bytes: int, message_sha256: str) -> None:
        super().__init__(
            "the HMAC does not fit timestamp + method + path + body as received",
            message_bytes=message_bytes,
            message_sha256=message_sha256,
        )


class ClockSkew(Unauthenticated):
    """The time of signing is outside the window, or not in seconds."""

    def __init__(self, timestamp: str, now_s: int) -> None:
        super().__init__(
            f"the timestamp is {timestamp[:20]!r}, and the server's clock says {now_s}:"
            " whole seconds close to it are wanted",
            server_time_s=now_s,
        )


class MissingHeader(Unauthenticated):
    """A header of the level is missing, or does not spell what it should."""

    def __init__(self, header: str) -> None:
        super().__init__(f"the header {header} is missing or malformed", header=header)


class UnknownKey(Unauthenticated):
    """No such API key, or not of this address."""


class RevokedKey(Unauthenticated):
    """The API key was revoked."""


class WrongPassphrase(Unauthenticated):
    """The passphrase is not the key's."""


class NonceNotMonotonic(InvalidInput):
    """A new key index must be greater than every one used."""

    def __init__(self, nonce: int, used_max: int) -> None:
        super().__init__(
            f"the nonce is {nonce}; one never used before must be greater than {used_max}"
        )


class NoSuchCredentials(NotFound):
    """No set of credentials was ever created for this address and nonce."""


class BodyTooLarge(InvalidInput):
    """The body is larger than the route takes."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"the body is larger than {bytes_max} bytes", bytes_max=bytes_max)


class MalformedBody(InvalidInput):
    """The body is not the JSON that the route takes."""


class MalformedQuery(InvalidInput):
    """A query parameter is missing or does not spell what it should."""

    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"{field} must be {wanted}", field=field)


class UnknownRoute(NotFound):
    """No route has this path."""


class MethodNotAllowed(InvalidInput):
    """The route has other methods, which the header Allow names."""

    def __init__(self, method: str, allowed: Sequence[str]) -> None:
        super().__init__(f"the route takes {', '.join(allowed)}, and not {method[:20]}")
        self.allowed = allowed


class UnsupportedMedia(InvalidInput):
    """A body or a file is of a kind that is not taken."""

    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"{field} must be {wanted}", field=field)


class UploadTooLarge(InvalidInput):
    """A file, or the text of a field, is larger than its bound."""

    def __init__(self, field: str, bytes_max: int) -> None:
        super().__init__(f"{field} is larger than {bytes_max} bytes", field=field)


class UploadTooSlow(InvalidInput):
    """A body did not arrive in time."""

    def __init__(self, deadline_s: float) -> None:
        super().__init__(f"the body did not arrive within {deadline_s:g} s")


class UploadsBusy(Unavailable):
    """Other uploads take all the memory that there is for them just now."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"uploads at once may take {bytes_max} bytes, and others have them")


class MissingParameter(InvalidInput):
    """A query parameter that the route needs is not there."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} is required", field=field)


class UnknownParameter(InvalidInput):
    """A query parameter that the route does not know, sent by a client that asked for strictness."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} is not a parameter of this route", field=field)


class UnknownRecord(NotFound):
    """Nothing is listed under the id or slug that the path names."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} not found", field=field)


class UnknownSortField(MalformedQuery):
    """A list is to be sorted by something that it is not sorted by."""

    def __init__(self, wanted: str) -> None:
        super().__init__("order", f"a list of {wanted}")


class Starting(Unavailable):
    """The process that was asked has not started yet; nothing was done."""

    def __init__(self) -> None:
        super().__init__("the service is starting", retry_after_s=1)
