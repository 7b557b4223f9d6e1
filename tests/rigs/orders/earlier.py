"""The bytes that an engine before version 2 of the order struct wrote for the same values."""

from typing import Any

import msgspec

from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.order import SignedOrder

PLACING = ["place"]


def encoded_before_version_2(shown: object) -> bytes:
    """Return values as MessagePack, without the fields of version 2 and of builders, which are none."""
    plain = msgspec.to_builtins(shown, builtin_types=(bytes,))
    return msgspec.msgpack.encode(_without_version_2(plain))


def _without_version_2(plain: Any) -> Any:
    if not isinstance(plain, list | tuple):
        return plain
    is_order = len(plain) == len(SignedOrder.__struct_fields__) and isinstance(plain[-2], bytes)
    assert not is_order or plain[-1] is None, "an order of version 2 has no such bytes"
    is_placing = plain[:1] == PLACING and len(plain) == len(PlaceOrder.__struct_fields__) + 1
    assert not is_placing or plain[-1] is None, "an order that a builder brought has no such bytes"
    return [_without_version_2(each) for each in (plain[:-1] if is_order or is_placing else plain)]
