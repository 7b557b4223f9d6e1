"""The calldata of `matchPacked`, written from its description in the reference."""

from collections.abc import Sequence
from typing import Final

from tests.contracts.evm import Receipt
from tests.contracts.market import Fill, World
from tests.contracts.signing import ERC1271, PROFILES, SELL, ZERO, Order

V_28: Final = 28
SELL_BIT: Final = 3
TYPE_BIT: Final = 4
V_BIT: Final = 6
EXTRA_BIT: Final = 7
OPERATOR_BIT: Final = 8


def word(number: int, bits: int = 256) -> bytes:
    return number.to_bytes(bits // 8, "big")


def extra_of(order: Order) -> bytes:
    """Return the words that most orders leave out."""
    if PROFILES[order.profile].struct_version == 1:
        words = word(order.nonce)
    else:
        words = order.metadata + order.builder
    return words if any(words) else b""


def record(order: Order, making: int, fee: int) -> bytes:
    """Return an order with its fill and its fee."""
    extra, is_wallet = extra_of(order), order.signature_type == ERC1271
    ecdsa = bytes(65) if is_wallet else order.signature
    flags = order.profile | (order.side == SELL) << SELL_BIT | order.signature_type << TYPE_BIT
    flags |= (ecdsa[64] == V_28) << V_BIT | bool(extra) << EXTRA_BIT
    flags |= (order.taker != ZERO) << OPERATOR_BIT
    signature = order.signature if is_wallet else b""
    return b"".join(
        [
            bytes.fromhex(order.signer[2:]),
            word(order.expiration or order.timestamp, 64),
            word(flags, 16),
            word(len(signature) if is_wallet else order.fee_rate_bps, 16),
            word(order.salt),
            word(order.maker_amount, 64) + word(order.taker_amount, 64),
            word(making, 64) + word(fee, 64),
            ecdsa[:64],
            extra,
            signature + bytes(-len(signature) % 32),
        ]
    )


def records(taker: Order, makers: Sequence[Order], fill: Fill) -> bytes:
    """Return the taker's token, and the records of a match, the taker's first."""
    fees = (0,) * len(fill.makers) if fill.maker_fees is None else fill.maker_fees
    parts = [record(taker, fill.taker, fill.taker_fee)]
    parts += [record(*each) for each in zip(makers, fill.makers, fees, strict=True)]
    return word(taker.token_id) + b"".join(parts)


def match_packed(world: World, taker: Order, makers: Sequence[Order], fill: Fill) -> Receipt:
    """Match as the operator, with packed calldata."""
    packed = records(taker, makers, fill)
    return world.exchange.send("matchPacked", packed, sender=world.operator)
