"""Calls and logs of the BatchSettler, which settles several matches in one transaction."""

import itertools
from collections.abc import Sequence
from typing import Final

from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.abi_values import WORD_BYTES, length_prefixed, word
from foretell.domain.values.hexadecimal import Address, address_bytes, keccak256

MATCHES_MAX: Final = 20
MATCH_BYTES_MAX: Final = 4_096
"""Most calldata of one match: twenty makers with short signatures if it is packed, else four."""

SETTLE: Final = contract_function("settle(address,bytes[],uint256[])", "(uint256)")

MATCHES_MAX_VIEW: Final = contract_function("matchesMax()", "(uint256)")
"""How many matches the contract says that it settles in a call: what has no such view is another contract."""

_MATCH_FAILED: Final = contract_function(
    "MatchFailed(address,uint256,bytes)", outputs="(uint256,bytes)"
)
MATCH_FAILED_TOPIC: Final = f"0x{keccak256(_MATCH_FAILED.signature.encode()).hex()}"


def encode_settle(exchange: Address, matches: Sequence[bytes], gas_limits: Sequence[int]) -> bytes:
    """Return the calldata that settles matches in their order, each with its gas limit."""
    assert len(matches) == len(gas_limits) <= MATCHES_MAX
    # Written out: a batch has many thousand bytes, and the general encoder looks at each match several times.
    contents = [length_prefixed(match) for match in matches]
    places = itertools.accumulate(map(len, contents[:-1]), initial=len(matches) * WORD_BYTES)
    listed = b"".join([word(len(matches)), *map(word, places if contents else ()), *contents])
    heads = 3 * WORD_BYTES
    return b"".join(
        [
            SETTLE.selector,
            address_bytes(exchange).rjust(WORD_BYTES, b"\0"),
            word(heads),
            word(heads + len(listed)),
            listed,
            word(len(gas_limits)),
            *map(word, gas_limits),
        ]
    )


def matches_of(calldata: bytes) -> tuple[bytes, ...]:
    """Return the calldata of each match of a batch, in their order."""
    return tuple(SETTLE.decode(calldata)[1])


def failed_places(result: bytes, count: int) -> frozenset[int]:
    """Return the places of the matches that failed, from the result of a simulated batch."""
    (bits,) = SETTLE.decode_result(result)
    if bits >> count:
        raise MalformedCalldata(f"failures among {count} matches")
    return frozenset(place for place in range(count) if bits >> place & 1)


def parse_match_failed(topics: Sequence[str], log_bytes: bytes) -> tuple[int, bytes] | None:
    """Return the place of a match and the start of its revert, or None for another log."""
    if not topics or topics[0].lower() != MATCH_FAILED_TOPIC:
        return None
    place, revert = _MATCH_FAILED.decode_result(log_bytes)
    return place, revert
