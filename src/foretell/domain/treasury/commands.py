"""What the treasury can be told.

As with the commands of an engine, the journal of them is the whole truth of the treasury, and a
field is only ever added at the end, with a default. Every command may be told again or late: what
it says are totals, or the number of the observation that it is.
"""

from typing import Final

import msgspec

from foretell.domain.exchange.allocations import AllocationTotal, Total
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen
from foretell.domain.values.hexadecimal import Address, Bytes32


class AdmitShard(msgspec.Struct, frozen=True, array_like=True, tag="admit"):
    """A shard asks for slices from now on, and every observation waits for it."""

    at_ms: int
    shard: str


class GrantAllocation(msgspec.Struct, frozen=True, array_like=True, tag="grant"):
    """A shard has an order that it could place if it had been given so much of a wallet in all."""

    at_ms: int
    shard: str
    wallet: Address
    given: Total


class TakeBack(msgspec.Struct, frozen=True, array_like=True, tag="take_back"):
    """What a shard has returned in all, of some wallets."""

    at_ms: int
    shard: str
    returned: tuple[AllocationTotal, ...]


class SettledSeen(msgspec.Struct, frozen=True, array_like=True):
    """What trades of a shard have moved of a wallet's collateral in all, as of the block."""

    shard: str
    wallet: Address
    total: Total


class ShardSeen(msgspec.Struct, frozen=True, array_like=True):
    """The block that a shard has observed last."""

    shard: str
    block_number: int
    block_hash: Bytes32


class ObserveCollateral(msgspec.Struct, frozen=True, array_like=True, tag="collateral"):
    """What the chain holds at a block that every shard has observed, and what they settled by it.

    `number` counts observations from 1, so one that comes late or twice is known. What is too much
    for one command comes in parts, counted from 1, and counts for nothing before the last is there.
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
    """Return the bytes that the treasury's journal keeps."""
    return _ENCODER.encode(command)


def decode_treasury_command(raw: bytes) -> TreasuryCommand:
    """Return the command that the treasury's journal kept."""
    return _DECODER.decode(raw)
