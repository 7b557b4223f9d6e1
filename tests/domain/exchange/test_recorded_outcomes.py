"""Outcomes of random commands, equal to those of an earlier engine.

`RECORDED` has the hashes that the engine of commit 47b63d6 gave. A change of a rule changes them on
purpose; a change that only makes the engine faster does not.
"""

import hashlib
from typing import Any, Final

import msgspec
import pytest
from tests.domain.exchange.random_stream import RandomStream

from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.apply import Outcome, apply
from foretell.domain.exchange.commands import Command, decode_command, encode_command
from foretell.domain.exchange.snapshot import decode_state, encode_state
from foretell.domain.exchange.state import State
from foretell.domain.exchange.state_effects import restored_effects

COMMANDS: Final = 1_200
COMMANDS_PER_PICTURE: Final = 60
PLACEMENTS_KEPT_MAX: Final = 150

RECORDED: Final[dict[int, str]] = {
    0: "5aa1355ad42b7b84c054b9c4989aa0be3e9c3f60d1bf9084c611d2f13f542ee8",
    1: "e507a9aec88dbe1f3e57a42546a8e977dcd8f6790c16610ff6b69e79cd88fc55",
    2: "32ecf1bc9e3719df4b299cd4c99bf634de0b18d7450598e1c0013e73ac29f41a",
    3: "951d132d2dd6279824f6750245398166de7c993777d0754532a8d4fd6d60cd51",
    4: "d94654e6f3da3c7a5ad8d9e61c55ddc016cbe7aac01ff27d962f9a6bbefe111c",
    5: "465750fb8275cb58ac70293e490706d4225e3ca07b308038a01ff1fafb5bc328",
    6: "564c0be4c198f1777f833bc056c7833f415201ffdaf1458069dcc81d61ffa0c6",
    7: "ccb7e7956b6a537f1151db9fcf32bbdbd7f66bf68c61bad7c065f353f0b09fc1",
    8: "ab82210d84140158ea7e55b16aebe1bbf2a40a396491e27507404643817779b3",
    9: "15684fdd5772ecb050406ed3be4c4ad588ed5e0f3148a4d01d93b92d69983609",
    10: "6cc4c2189539cec8f287a6ed417f9919d19af3108ddf61131b58eb5b738ab447",
    11: "2dfd98d790d3a12edce76136157928a396034e341101dd431b22989a0d2e8804",
    12: "c769b6a10cfc83b1356cf4ac1de56521a6d82511a95e9cfe74949d7190310f9c",
    13: "a0b062ae7a992fc267e4eb5bdb951f98da12d4268c3d1a7c9fd851299f2d5174",
    14: "e4dd1f85600601d6d66792c43c5b8eadf7aec8a93107ca120bcce7fcb22a5c13",
    15: "d4702e4d6e2cfed9403bdb5b3d768d27aacb475b8c82a6df0761ac2123d1176f",
    16: "9ae3772af499f899d978f07590b4de980df4a6419657ff370e021480174f085e",
    17: "5df51ff7d845e85659807b1eef793dd6ce6559313f792bda1c518808b20daeb2",
    18: "e563507688244773ee6aa928fc759d0eea033d89ba5b779faadeedd2e2ae898c",
    19: "8272451c07a04fab8d053a6f178c728c18ca6186a37666d9923e8782fbfc9269",
    20: "22af0dcd06d2e9885d091f3448c501f58694f03a96cf83da769cc58bc2025232",
    21: "eb0bf7747671cca5e872ef4fd453a955071d9840116653a389421d99741560e5",
    22: "6649186c7a23139025010b90dd34bd03bfd827902aa125b8153505e2487af2e7",
    23: "e5ce2048a043253a68304a5f997727f4936bf48631c734d9a5fb28abae4a16c9",
    24: "947a72a7383a77e86b011a42d5a30423ee5e152cfff89af1828d7c2e5a9eeb5d",
    25: "57c500c2764ed65cc0154115118a74eb0a0577ac83d51de847b98fca7ab5ff03",
    26: "b54d28e42546318fe9d01113defc207e136800919edde04c53749560f0d3ffc4",
    27: "5aad2365ce3341a525a0249605222757b1abe96a76af84f9e9bcd9cfeea1eb57",
    28: "00e1719d19ed95f7fa152a199dcaf81c83ac088941955d4499c8db80a3d2da54",
    29: "5f3076529e3cdaf34e948408adaba75bf640d41835567ce45a24fbe5fcab6653",
    30: "477c7ebfc09a1fddd2883e98219ae024d90098f374df794ba669310c9a0c10dd",
    31: "340d6ab6a68706563caca2fef159cb30e0ff28e39b77d9b0f57b04f05bd3a352",
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
            seen.update(raw)
            seen.update(msgspec.msgpack.encode(list(restored_effects(state))))
            state = decode_state(raw, PLACEMENTS_KEPT_MAX)
    seen.update(encode_state(state))
    return seen.hexdigest()


def _take(state: State, command: Command, seen: Any) -> Any:
    """Apply a command, and add its outcome or its refusal to the hash."""
    command = decode_command(encode_command(command))
    try:
        outcome: Outcome = apply(state, command)
    except ForetellError as refusal:
        seen.update(f"{type(refusal).__name__} {refusal}".encode())
        return []
    shown = (outcome.is_change, outcome.result, outcome.effects)
    seen.update(msgspec.msgpack.encode(shown))
    return outcome.effects


@pytest.mark.parametrize("seed", RECORDED)
def test_the_outcomes_of_a_stream_are_those_of_the_earlier_engine(seed: int) -> None:
    assert outcomes(seed) == RECORDED[seed]
