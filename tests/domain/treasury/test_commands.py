"""Commands of the treasury and their encoding in its journal."""

import base64
from typing import get_args

import msgspec
import pytest
from tests.rigs.values import EXCHANGE, NOW_MS, a_word, an_address

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
    decode_treasury_command,
    encode_treasury_command,
)

ALICE = an_address("alice")
COMMANDS: dict[str, TreasuryCommand] = {
    "admit": AdmitShard(NOW_MS, "north"),
    "grant": GrantAllocation(NOW_MS, "north", ALICE, total_of(2**70)),
    "take back": TakeBack(NOW_MS, "north", (AllocationTotal(ALICE, total_of(2**70)),)),
    "observe": ObserveCollateral(
        at_ms=NOW_MS,
        number=1,
        block_number=2,
        block_hash=a_word("block 2"),
        shards=(ShardSeen("north", 2, a_word("block 2")),),
        balances=(BalanceSeen(ALICE, COLLATERAL, 2**63 - 1),),
        allowances=(AllowanceSeen(ALICE, EXCHANGE, is_collateral=True, units=5),),
        settled=(SettledSeen("north", ALICE, total_of(-(2**70))),),
        part=2,
        parts=3,
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_decoded_command_equals_the_encoded_one(name: str) -> None:
    command = COMMANDS[name]
    assert decode_treasury_command(encode_treasury_command(command)) == command


@pytest.mark.parametrize("kind", get_args(TreasuryCommand), ids=lambda kind: kind.__name__)
def test_a_command_is_immutable(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.frozen
    assert kind.__struct_config__.array_like


def test_every_kind_of_command_is_tested_here() -> None:
    assert {type(command) for command in COMMANDS.values()} == set(get_args(TreasuryCommand))


@pytest.mark.parametrize("raw", [b"", b"\x90", msgspec.msgpack.encode(["unknown", 1])])
def test_bytes_that_are_no_command_are_refused(raw: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_treasury_command(raw)


# A journal is kept, so commands of old journals must stay readable.
KEPT = {
    "admit": ("k6VhZG1pdM8AAAGjGFxQAKVub3J0aA=="),
    "grant": (
        "laVncmFudM8AAAGjGFxQAKVub3J0aNkqMHg4ZDMyMWE4ODU0NWJlMjlmZTRmYzA5ZGE3OWM4NGNjMjM1MDg3"
        "OTditjExODA1OTE2MjA3MTc0MTEzMDM0MjQ="
    ),
    "take back": (
        "lKl0YWtlX2JhY2vPAAABoxhcUAClbm9ydGiRktkqMHg4ZDMyMWE4ODU0NWJlMjlmZTRmYzA5ZGE3OWM4NGNj"
        "MjM1MDg3OTditjExODA1OTE2MjA3MTc0MTEzMDM0MjQ="
    ),
    "observe": (
        "m6pjb2xsYXRlcmFszwAAAaMYXFAAAQLZQjB4NTcwNDVkOTc2ZjliZTZlZjA1MTRiMzE0NDVmZjJlODQ0YzM0"
        "OGIxODczOTIxODY5MGQwYmUzNTEyOGExNTRhMJGTpW5vcnRoAtlCMHg1NzA0NWQ5NzZmOWJlNmVmMDUxNGIz"
        "MTQ0NWZmMmU4NDRjMzQ4YjE4NzM5MjE4NjkwZDBiZTM1MTI4YTE1NGEwkZPZKjB4OGQzMjFhODg1NDViZTI5"
        "ZmU0ZmMwOWRhNzljODRjYzIzNTA4Nzk3YqEwz3//////////kZTZKjB4OGQzMjFhODg1NDViZTI5ZmU0ZmMw"
        "OWRhNzljODRjYzIzNTA4Nzk3YtkqMHhlMWUxZTFlMWUxZTFlMWUxZTFlMWUxZTFlMWUxZTFlMWUxZTFlMWUx"
        "wwWRk6Vub3J0aNkqMHg4ZDMyMWE4ODU0NWJlMjlmZTRmYzA5ZGE3OWM4NGNjMjM1MDg3OTdity0xMTgwNTkx"
        "NjIwNzE3NDExMzAzNDI0AgM="
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_commands_of_old_journals_are_decoded(name: str) -> None:
    assert decode_treasury_command(base64.b64decode(KEPT[name])) == COMMANDS[name]
