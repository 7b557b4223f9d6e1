"""Outcomes of random commands, equal to those of an earlier engine.

`RECORDED` has the hashes that the engine of commit 4af0b79 gave. A change of a rule changes them on
purpose; a change that only makes the engine faster does not.
"""

import hashlib
from typing import Any, Final

import msgspec
import pytest
from tests.domain.exchange.reference.random_stream import RandomStream
from tests.rigs.orders.earlier import encoded_before_version_2

from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.apply import Outcome, apply
from foretell.domain.exchange.commands import Command, decode_command, encode_command
from foretell.domain.exchange.snapshot import decode_state, encode_state
from foretell.domain.exchange.state import State
from foretell.domain.exchange.state_effects import restored_effects

COMMANDS: Final = 1_200
COMMANDS_PER_PICTURE: Final = 60
PLACEMENTS_KEPT_MAX: Final = 150
ENGINE_TIME: Final = "the matching engine's time, which never goes back, is"
"""What the earlier engine's refusal of an expiration did not say."""

RECORDED: Final[dict[int, str]] = {
    0: "70cd23da7a16e9696e15817676d0bc2862261cf35020df42c0655f166e558a18",
    1: "939b27a0b6f7b668ad735ae65bf84091504defe54336fef75319077584484958",
    2: "a223156b9d33f110c74d16b5ab988da45564807c2b3b1a80915d66a6fa1cd005",
    3: "ff6d99824e70fb08b89da1c16dce29e56e7db49a42e438942bd22dc96ba8e39f",
    4: "db143ad6a8189ee983a7b56e388635da5656e0c1517513faf0bd807460545f44",
    5: "397b6ef4d4677c6019e365b5ca13427e9e4562e0e23087c00eca22ed8de80be0",
    6: "4f6fc6b4058a75921ffe785a9a5b92536fde5aad7fbf6047566abecf2156854d",
    7: "37b49aebdca5029701ddb7b0dfc3e5dd5f92536081403f855cee83142ff92913",
    8: "2839a39c67313bfb8138e4c3abb659a05c71561ade8fdf6a097a1c3938cb1132",
    9: "36ff58ece196e518e65544e3414779c55ad6d2a78e1b6fb748f301b9e8c78b1d",
    10: "a77e360b65bd712306cfc7edb04dbdd6a313d226c7888b6a06ab0a0a92971537",
    11: "dc071fdffaaea421b3d875e913d6d8dc5aedd9f86fcf1390e454298415a1440a",
    12: "676b33a708b887572165c91f82ff932fa80c2f99d64eb368f71163eb799e2993",
    13: "dbf62f2e598a96fe4f59d1a4e4914ae40695d9cd89bc4497b591b22b9897b38c",
    14: "7bf6d47873a0242bb45300424e20f076227ed0fbbbe59b2aa13bd323a820e995",
    15: "4f02f0d7236d68c21a5d7221ffd3654897dd3b5a30dba598e016c9022f18f7a8",
    16: "f820742014b3f3603c88ed8327b8a3d0da36909a14eb72d369a5e346a2c8b186",
    17: "d6ad17627ea9a2d87113ecacf42250d5d1c52c036cdd41afded65abf09f5ad51",
    18: "ecee7df4912b675fbdc01306599fb3b68388e84a07ef6776c860acf19f7db1cc",
    19: "f298db01ccff31a8abff6be5712a586af52bf6eb6574ccb8fae24fd15e5c61b4",
    20: "81efd3772223ac95cf4d0fb600cf236654fcf8ffb7033186e34dc1cd892f38b1",
    21: "4ea17a335bae5f8ee3a5a0d908590302e3df5318a902ea8768867e6c1204bbc9",
    22: "8b806f1760a9731eef39c2589918f9bc2bab52f9b5e84a2fa22b1c201c6c48b0",
    23: "089c80d0ad8aa391531d30ccfdc5b25b0f8b7295723b9d3df7a1209a687bc8e4",
    24: "5ea92bdccbef803937172864a609220e59834910384b8290248d15d23c810d80",
    25: "fccd180a000ffc43a5150aae8ab75c07c2b0413925d8d4ca76344da384986b32",
    26: "49329f6e0980e95c0865a2fc87a9d5a63cdaf727f5c3b13c027ba73ddcc7f139",
    27: "ac85dff0eb2cee4037f159bdd116f62634d1880a732c6bf19f01acd0959be967",
    28: "3df17d79f26cf43ab57f5ba2e5f443a39e78b0ea7d84dc4eca0642e296f4cea2",
    29: "886fdd4afd1d52d72756a12a7a172f2759f8402518de193e77f4cf4ab69fe85c",
    30: "a82e8eeb51fc77479e082934349f81761b5a00687ee825635a779220a10c9e0c",
    31: "70693e90394808d66a982d7ac8a9ddf33a1381f50f32469d0c614e2653af1acb",
}


def outcomes(seed: int) -> str:
    """Return the hash of all outcomes of a stream, and of the states in between."""
    stream, state, seen = RandomStream(seed), State(PLACEMENTS_KEPT_MAX), hashlib.sha256()
    for command in stream.begin():
        stream.take(_take(state, command, seen))
    for number in range(COMMANDS):
        stream.take(_take(state, stream.next(), seen))
        if number % COMMANDS_PER_PICTURE == 0:
            raw = encode_state(state)
            seen.update(encoded_before_version_2(msgspec.msgpack.decode(raw)))
            seen.update(encoded_before_version_2(list(restored_effects(state))))
            state = decode_state(raw, PLACEMENTS_KEPT_MAX)
    seen.update(encoded_before_version_2(msgspec.msgpack.decode(encode_state(state))))
    return seen.hexdigest()


def _take(state: State, command: Command, seen: Any) -> Any:
    """Apply a command, and add its outcome or its refusal to the hash."""
    command = decode_command(encode_command(command))
    try:
        outcome: Outcome = apply(state, command)
    except ForetellError as refusal:
        words = str(refusal).replace(ENGINE_TIME, "it is")
        seen.update(f"{type(refusal).__name__} {words}".encode())
        return []
    shown = (outcome.is_change, outcome.result, outcome.effects)
    seen.update(encoded_before_version_2(shown))
    return outcome.effects


@pytest.mark.parametrize("seed", RECORDED)
def test_the_outcomes_of_a_stream_are_those_of_the_earlier_engine(seed: int) -> None:
    assert outcomes(seed) == RECORDED[seed]
