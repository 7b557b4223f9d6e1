"""Encoding of the treasury's state; `test_machine` restarts from a snapshot at any moment."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.digest import treasury_digest
from tests.rigs.values import NOW_MS, a_word, an_address

from foretell.domain.errors.storage import SnapshotUnknown
from foretell.domain.exchange.allocations import AllocationTotal, total_of
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.treasury.commands import (
    AdmitShard,
    GrantAllocation,
    ObserveCollateral,
    SettledSeen,
    ShardSeen,
    TakeBack,
    TreasuryCommand,
)
from foretell.domain.treasury.snapshot import (
    VERSION,
    decode_treasury,
    encode_treasury,
)
from foretell.domain.treasury.treasury import Treasury, apply_to_treasury, recalls

ALICE, BOB = an_address("alice"), an_address("bob")
EXCHANGE = an_address("exchange")


def an_observation(
    number: int,
    balances: dict[str, int],
    settled: tuple[SettledSeen, ...] = (),
    part: int = 1,
    parts: int = 1,
) -> ObserveCollateral:
    return ObserveCollateral(
        at_ms=NOW_MS,
        number=number,
        block_number=number,
        block_hash=a_word(f"block {number}"),
        shards=tuple(
            ShardSeen(shard, number, a_word(f"block {number}")) for shard in ("north", "south")
        ),
        balances=tuple(
            BalanceSeen(an_address(name), COLLATERAL, units) for name, units in balances.items()
        ),
        allowances=tuple(
            AllowanceSeen(an_address(name), EXCHANGE, is_collateral=True, units=2**63)
            for name in balances
        ),
        settled=settled,
        part=part,
        parts=parts,
    )


COMMANDS: list[TreasuryCommand] = [
    AdmitShard(NOW_MS, "north"),
    AdmitShard(NOW_MS, "south"),
    an_observation(1, {"alice": 1000, "bob": 70}),
    GrantAllocation(NOW_MS, "south", BOB, total_of(40)),
    GrantAllocation(NOW_MS, "north", ALICE, total_of(600)),
    TakeBack(NOW_MS, "north", (AllocationTotal(ALICE, total_of(100)),)),
    an_observation(2, {"bob": 3}, (SettledSeen("south", ALICE, total_of(-(2**70))),)),
    an_observation(3, {"alice": 5}, part=1, parts=2),
]


def a_treasury(count: int = len(COMMANDS)) -> Treasury:
    treasury = Treasury()
    for command in COMMANDS[:count]:
        assert apply_to_treasury(treasury, command).is_change
    return treasury


def test_a_treasury_with_entries_of_every_kind_is_restored() -> None:
    treasury = a_treasury()
    restored = decode_treasury(encode_treasury(treasury))
    assert restored == treasury
    assert restored.allocations_by_wallet[ALICE]["south"].settled_units == -(2**70)
    assert [recall.wallet for recall in recalls(restored)] == [BOB]
    assert restored.observed_parts == [COMMANDS[-1]]


@pytest.mark.parametrize("count", range(len(COMMANDS) + 1))
def test_a_replay_from_any_snapshot_gives_the_same_bytes(count: int) -> None:
    restored = decode_treasury(encode_treasury(a_treasury(count)))
    for command in COMMANDS[count:]:
        apply_to_treasury(restored, command)
    assert encode_treasury(restored) == encode_treasury(a_treasury())
    assert treasury_digest(restored) == treasury_digest(a_treasury())


def test_different_treasuries_have_different_digests() -> None:
    digests = {treasury_digest(a_treasury(count)) for count in range(len(COMMANDS) + 1)}
    assert len(digests) == len(COMMANDS) + 1


@pytest.mark.parametrize("version", [0, VERSION + 1])
def test_an_unknown_version_is_refused(version: int) -> None:
    body = msgspec.msgpack.decode(encode_treasury(Treasury()))
    with pytest.raises(
        SnapshotUnknown, match=f"version {version}, and this program supports version {VERSION}"
    ):
        decode_treasury(msgspec.msgpack.encode([version, *body[1:]]))


@given(st.binary(max_size=40))
def test_bytes_that_are_no_treasury_are_refused(raw: bytes) -> None:
    with pytest.raises(SnapshotUnknown):
        decode_treasury(raw)


def test_a_body_of_the_right_version_that_is_cut_short_is_refused() -> None:
    with pytest.raises(SnapshotUnknown):
        decode_treasury(encode_treasury(a_treasury())[:-3])
