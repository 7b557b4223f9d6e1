"""Stops: what a maker ends at an exchange in one call, besides its nonce.

With a timestamp it ends its orders of struct version 2 that were signed earlier, and a Safe ends the
orders that its first owner signs alone, as a proxy wallet does those of its owner. A live order keeps one integer for all that ends it: the nonce
of version 1, or, above all nonces, the timestamp of version 2 and a bit for the Safe or
proxy wallet.
"""

import enum
from typing import Final

from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.values.hexadecimal import Address

_OWNED: Final = frozenset({SignatureType.SAFE, SignatureType.PROXY})
_VERSION_2: Final = 1 << 62
_SIGNED_ALONE: Final = 1 << 61
TIMESTAMP_MS_MAX: Final = _SIGNED_ALONE - 1
"""A later timestamp counts as this one, which no exchange's clock reaches."""


class StopKind(enum.IntEnum):
    """The part of a maker's word that a stop changes; part 0 is its nonce."""

    TIMESTAMP = 1
    OWNER_SIGNING = 2


def standing_of(order: SignedOrder) -> int:
    """Return what a live order keeps of its signature: by this a nonce or a stop ends it."""
    if order.v2 is None:
        return order.nonce
    alone = _SIGNED_ALONE if order.signature_type in _OWNED else 0
    return _VERSION_2 | alone | min(order.v2.timestamp_ms, TIMESTAMP_MS_MAX)


def is_stopped(
    standing: int, kind: StopKind, value: int, *, signer: Address, maker: Address
) -> bool:
    """Return whether a maker's stop ends an order.

    Orders that rested before stops were known have all bits of version 2: no timestamp ends them.
    """
    is_version_2 = standing >= _VERSION_2
    if kind is StopKind.TIMESTAMP:
        return is_version_2 and standing & TIMESTAMP_MS_MAX < value
    is_alone = not is_version_2 or standing & _SIGNED_ALONE != 0
    return value != 0 and signer != maker and is_alone
