"""Refusals of builders: their keys, their headers beside those of an order's owner, their codes.

Their place in the tree of refusals: see `families`.
"""

from foretell.domain.errors.families import Conflict, InvalidInput, Unauthenticated


class BuilderHeadersRefused(Unauthenticated):
    """The builder's headers beside right L2 headers are wrong; the request was not carried out."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the builder's headers are wrong: {reason}; leave them out, or sign again"
        )


class TooManyBuilderKeys(Conflict):
    """The address has as many builder's keys as it may have."""

    def __init__(self, most: int, created_most: int) -> None:
        super().__init__(
            f"an address has at most {most} builder's keys, and at most {created_most} with those that it"
            " deleted; delete one, or use another address",
            most=most,
        )


class InvalidBuilderCode(InvalidInput):
    """A builder's code is 32 bytes of hex after 0x."""

    def __init__(self) -> None:
        super().__init__("a builder's code must be 0x and 64 hex digits")
