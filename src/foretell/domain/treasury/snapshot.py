"""Encoding of the treasury's whole state; `domain.exchange.snapshot` encodes that of a shard.

Wallets and shards are in the order of their first command, which is the same after a replay. Totals
are decimal strings, because they may exceed an integer of MessagePack.
"""

from typing import Final

import msgspec

from foretell.domain.exchange.allocations import Allocation, Total
from foretell.domain.treasury.commands import ObserveCollateral
from foretell.domain.treasury.treasury import Treasury
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.domain.values.versioned import Versioned

VERSION: Final = 1


class _Allocation(msgspec.Struct, frozen=True, array_like=True):
    shard: str
    given: Total
    returned: Total
    settled: Total


class _Body(msgspec.Struct, frozen=True, array_like=True):
    version: int
    shards: list[str]
    confirmed: list[tuple[Address, int]]
    allowances: list[tuple[Address, list[tuple[Address, int]]]]
    allocations: list[tuple[Address, list[_Allocation]]]
    overdrawn: list[Address]
    observations: int
    observed_block: int
    observed_hash: Bytes32
    observed_parts: list[ObserveCollateral]


_BYTES: Final = Versioned(VERSION, _Body)


def encode_treasury(treasury: Treasury) -> bytes:
    """Return the bytes of a treasury between two commands; equal ones have equal bytes."""
    body = _Body(
        version=VERSION,
        shards=list(treasury.shards),
        confirmed=list(treasury.confirmed_by_wallet.items()),
        allowances=[
            (wallet, list(allowances.items()))
            for wallet, allowances in treasury.allowances_by_wallet.items()
        ],
        allocations=[
            (wallet, [_Allocation(shard, *held.totals()) for shard, held in allocations.items()])
            for wallet, allocations in treasury.allocations_by_wallet.items()
        ],
        overdrawn=list(treasury.overdrawn),
        observations=treasury.observations,
        observed_block=treasury.observed_block,
        observed_hash=treasury.observed_hash,
        observed_parts=treasury.observed_parts,
    )
    return _BYTES.encode(body)


def decode_treasury(raw: bytes) -> Treasury:
    """Return the decoded treasury, or refuse bytes of an unknown version."""
    body = _BYTES.decode(raw)
    return Treasury(
        shards=dict.fromkeys(body.shards),
        confirmed_by_wallet=dict(body.confirmed),
        allowances_by_wallet={wallet: dict(allowances) for wallet, allowances in body.allowances},
        allocations_by_wallet={
            wallet: {
                each.shard: Allocation.of_totals(each.given, each.returned, each.settled)
                for each in allocations
            }
            for wallet, allocations in body.allocations
        },
        overdrawn=dict.fromkeys(body.overdrawn),
        observations=body.observations,
        observed_block=body.observed_block,
        observed_hash=body.observed_hash,
        observed_parts=body.observed_parts,
    )
