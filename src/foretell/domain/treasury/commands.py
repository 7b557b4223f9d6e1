"""Commands of the treasury.

A replay of the journal of commands gives the same treasury. A field is only ever added at the end,
with a default. Every command may come late or twice: it holds totals, or the number of its
observation.
"""

from typing import Final

import msgspec

from foretell.domain.exchange.allocations import AllocationTotal, Total
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen
from foretell.domain.values.hexadecimal import Address, Bytes32


class AdmitShard(msgspec.Struct, frozen=True, array_like=True, tag="admit"):
    """Admit a shard: it may be granted allocations, and every observation waits for it."""

    at_ms: int
    shard: str


class GrantAllocation(msgspec.Struct, frozen=True, array_like=True, tag="grant"):
    """Grant an allocation: `given` is the total that the shard needs for an order of the wallet."""

    at_ms: int
    shard: str
    wallet: Address
    given: Total


class TakeBack(msgspec.Struct, frozen=True, array_like=True, tag="take_back"):
    """Take back what a shard has returned: its totals of some wallets."""

    at_ms: int
    shard: str
    returned: tuple[AllocationTotal, ...]


class SettledSeen(msgspec.Struct, frozen=True, array_like=True):
    """The total that settled trades of a shard moved of a wallet's collateral, as of the block."""

    shard: str
    wallet: Address
    total: Total


class ShardSeen(msgspec.Struct, frozen=True, array_like=True):
    """The last block that a shard has observed."""

    shard: str
    block_number: int
    block_hash: Bytes32


class ObserveCollateral(msgspec.Struct, frozen=True, array_like=True, tag="collateral"):
    """Observe a block that every shard has observed: balances, allowances and settled totals.

    `number` counts observations from 1, so that one that comes late or twice is recognized. An
    observation that is too large for one command comes in parts, counted from 1, and takes effect
    with the last part.
    """

    at_ms: int
    number: int
    block_number: int
    block_hash: Bytes32
    shards: tuple[ShardSeen, ...]
    balances: tuple[BalanceSeen, ...]
    allowances: tuple[AllowanceSeen, ...]
    settled: tuple[SettledSeen, ...]
    part: int = 1
    parts: int = 1


TreasuryCommand = AdmitShard | GrantAllocation | TakeBack | ObserveCollateral

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final[msgspec.msgpack.Decoder[TreasuryCommand]] = msgspec.msgpack.Decoder(TreasuryCommand)


def encode_treasury_command(command: TreasuryCommand) -> bytes:
    """Return the bytes that the treasury's journal stores."""
    return _ENCODER.encode(command)


def decode_treasury_command(raw: bytes) -> TreasuryCommand:
    """Return the command that the treasury's journal stored."""
    return _DECODER.decode(raw)
