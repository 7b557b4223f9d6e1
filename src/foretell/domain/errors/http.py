"""Refusals shared by all HTTP surfaces: authentication, bodies, queries and uploads.

Their place in the tree of refusals: see `families`.
"""

from collections.abc import Sequence

from foretell.domain.errors.families import (
    Conflict,
    ForetellError,
    InvalidInput,
    NotFound,
    Unauthenticated,
    Unavailable,
)


class L1SignatureMismatch(Unauthenticated):
    """The wallet signature was not made by the address over these headers."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"the signature was not made by {address} over these headers; check the key, the chain id and"
            " the nonce"
        )


class UnboundSignature(Unauthenticated):
    """The wallet signature is right, but does not say for which installation it was made."""

    def __init__(self, contract: str) -> None:
        super().__init__(
            "the signature names no installation, so another one may have got it; sign with"
            f" verifyingContract {contract} in the domain, as auth.domain of GET /auth/account says",
            verifying_contract=contract,
        )


class L2SignatureMismatch(Unauthenticated):
    """The HMAC was not made with the key's secret over this request, as the details describe it."""

    def __init__(self, message_bytes: int, message_sha256: str) -> None:
        super().__init__(
            "the HMAC does not fit timestamp + method + path + body as received",
            message_bytes=message_bytes,
            message_sha256=message_sha256,
        )


class ClockSkew(Unauthenticated):
    """The timestamp is outside the window, or not in seconds."""

    def __init__(self, timestamp: str, now_s: int) -> None:
        super().__init__(
            f"the timestamp is {timestamp[:20]!r}, and the server's clock is {now_s}:"
            " it must be whole seconds close to that",
            server_time_s=now_s,
        )


class MissingHeader(Unauthenticated):
    """An authentication header is missing, malformed, or sent more than once."""

    def __init__(self, header: str) -> None:
        super().__init__(f"the header {header} is missing, malformed or repeated", header=header)


class UnknownKey(Unauthenticated):
    """The API key does not exist, or belongs to another address."""


class ReadonlyKeyRefused(Unauthenticated):
    """The route needs an API key, and the request has a read-only key."""

    def __init__(self) -> None:
        super().__init__(
            "a read-only key reads orders, trades and notifications only; sign this request with an API key"
        )


class RevokedKey(Unauthenticated):
    """The API key was revoked."""


class WrongPassphrase(Unauthenticated):
    """The passphrase is not the key's."""


class SignedBeforeRevocation(Unauthenticated):
    """The wallet signature is not younger than a revocation, so it makes no new set of credentials."""

    def __init__(self, signed_at_s: int, revoked_at_s: int) -> None:
        super().__init__(
            f"the request was signed at {signed_at_s} s, and credentials of this address were revoked"
            f" at {revoked_at_s} s; sign a new request with a later timestamp",
            signed_at_s=signed_at_s,
            revoked_at_s=revoked_at_s,
        )


class NotServed(ForetellError):
    """The installation lacks what the route, or the form of its answer, needs."""

    def __init__(self, programme: str) -> None:
        super().__init__(f"this installation has no {programme}; nothing was done")


class MalformedIdempotencyKey(InvalidInput):
    """The header that names a request is malformed, or was sent more than once."""

    def __init__(self, characters_max: int) -> None:
        super().__init__(
            f"the header Idempotency-Key must be sent once, with 1 to {characters_max} visible ASCII"
            " characters"
        )


class IdempotencyKeyReused(Conflict):
    """The client has used this idempotency key for another request."""

    def __init__(self) -> None:
        super().__init__(
            "this Idempotency-Key was used for a request with another method, path, query or body;"
            " use a new key for a new request"
        )


class NonceNotMonotonic(InvalidInput):
    """The nonce of a new key must be greater than every nonce used."""

    def __init__(self, nonce: int, used_max: int) -> None:
        super().__init__(f"the nonce is {nonce}; an unused nonce must be greater than {used_max}")


class NoSuchCredentials(NotFound):
    """No credentials were created for this address and nonce."""


class BodyTooLarge(InvalidInput):
    """The body is larger than the limit of the route."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"the body is larger than {bytes_max} bytes", bytes_max=bytes_max)


class BodyCutOff(InvalidInput):
    """The client closed its connection before its body was complete; nothing was done."""

    def __init__(self) -> None:
        super().__init__("the connection was closed before the body was complete")


class BodiesBusy(Unavailable):
    """Other bodies that are arriving use all the memory for bodies."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(
            f"all {bytes_max} bytes of memory for bodies are in use; send the request again later"
        )


class MalformedBody(InvalidInput):
    """The body is not the JSON that the route expects."""


class MalformedQuery(InvalidInput):
    """A query parameter is missing or malformed."""

    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"{field} must be {wanted}", field=field)


class UnknownRoute(NotFound):
    """No route has this path."""


class MethodNotAllowed(InvalidInput):
    """The route does not have the method; the header Allow lists those that it has."""

    def __init__(self, method: str, allowed: Sequence[str]) -> None:
        super().__init__(
            f"the method is {method[:20]}, and this route supports {', '.join(allowed)}"
        )
        self.allowed = allowed


class OriginRefused(InvalidInput):
    """A page of an origin that is not allowed may change nothing here."""

    def __init__(self, origin: str) -> None:
        super().__init__(f"pages of {origin[:100]} may not use this API from a browser")


class UnsupportedMedia(InvalidInput):
    """A body or a file has an unsupported media type."""

    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"{field} must be {wanted}", field=field)


class UploadTooLarge(InvalidInput):
    """A file or a form field is larger than its limit."""

    def __init__(self, field: str, bytes_max: int) -> None:
        super().__init__(f"{field} is larger than {bytes_max} bytes", field=field)


class UploadTooSlow(InvalidInput):
    """A body did not arrive in time."""

    def __init__(self, deadline_s: float) -> None:
        super().__init__(f"the body did not arrive within {deadline_s:g} s; send it again")


class UploadsBusy(Unavailable):
    """Other uploads use all the memory reserved for uploads."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(
            f"all {bytes_max} bytes of memory for uploads are in use; send the upload again later"
        )


class MissingParameter(InvalidInput):
    """A required query parameter is missing."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} is required", field=field)


class UnknownParameter(InvalidInput):
    """An unknown query parameter, in a request that asked for strict parameters."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} is not a parameter of this route", field=field)


class UnknownRecord(NotFound):
    """The path names an id or slug that does not exist."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} not found", field=field)


class UnknownSortField(MalformedQuery):
    """A list cannot be sorted by the field."""

    def __init__(self, wanted: str) -> None:
        super().__init__("order", f"a list of {wanted}")


class TooManyRequests(Unavailable):
    """A client is over a rate limit by more than may wait, or its reads use all its places; nothing was done."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            f"too many requests; send this one again in {retry_after_s} s",
            retry_after_s=retry_after_s,
        )


class ClientGone(Unavailable):
    """The client closed its connection while its request waited; nothing was done."""

    def __init__(self) -> None:
        super().__init__("the connection was closed before the request's turn came")


class Starting(Unavailable):
    """The process has not started yet; nothing was done."""

    def __init__(self) -> None:
        super().__init__("the process is still starting; try again later", retry_after_s=1)


class MalformedRequest(ForetellError):
    """What arrived on a connection is no HTTP request."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the request cannot be read: {what}")


class TooManyChunks(MalformedRequest):
    """A body comes in very many small chunks."""

    def __init__(self, chunks_free: int, chunk_bytes_min: int) -> None:
        super().__init__(
            f"its body has more than {chunks_free} chunks of fewer than {chunk_bytes_min} bytes; send larger"
            " chunks, or the body whole with its Content-Length"
        )


class RequestTooSlow(ForetellError):
    """A request did not arrive in time."""

    def __init__(self, deadline_s: float) -> None:
        super().__init__(f"the request did not arrive within {deadline_s:g} s")


class UrlTooLong(ForetellError):
    """The path with its query is too long."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"the path and the query are longer than {bytes_max} bytes")


class HeadersTooLarge(ForetellError):
    """The headers of a request are too large or too many."""

    def __init__(self, bytes_max: int, count_max: int) -> None:
        super().__init__(f"the headers have more than {bytes_max} bytes or {count_max} lines")


class UnknownMethod(ForetellError):
    """No route of any API has such a method."""

    def __init__(self, method: str) -> None:
        super().__init__(f"the method {method[:20]} is unknown")


class UnsupportedVersion(ForetellError):
    """The request is of another version of HTTP."""

    def __init__(self) -> None:
        super().__init__("the version of HTTP must be 1.1 or 1.0")


class TooManyConnections(Unavailable):
    """The process serves as many connections as it can."""

    def __init__(self, retry_after_s: int = 1) -> None:
        super().__init__(
            "too many connections are open, or this address opens them too fast",
            retry_after_s=retry_after_s,
        )
