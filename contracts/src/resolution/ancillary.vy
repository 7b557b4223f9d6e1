# pragma version 0.4.3
"""
@title Ancillary data
@license Apache-2.0
@notice The text of a question. Its creator is written at its end, so that two people who ask
        the same ask two questions, and nobody can ask in another's name.
"""

# With its initializer; no longer, for oracles elsewhere add to it once more.
ANCILLARY_BYTES_MAX: constant(uint256) = 8139
# ",initializer:" and 40 hex digits.
SUFFIX_BYTES: constant(uint256) = 53
SIGNED_BYTES_MAX: constant(uint256) = ANCILLARY_BYTES_MAX + SUFFIX_BYTES


@internal
@pure
def _signed(text: Bytes[ANCILLARY_BYTES_MAX], initializer: address) -> Bytes[SIGNED_BYTES_MAX]:
    """
    @dev The text with its initializer.
    """
    if len(text) == 0 or len(text) + SUFFIX_BYTES > ANCILLARY_BYTES_MAX:
        raw_revert(method_id("InvalidAncillaryData()"))
    first: uint256 = 0
    last: uint256 = 0
    first, last = self._hex_digits(initializer)
    return concat(
        text,
        b",initializer:",
        convert(first, bytes32),
        slice(convert(last, bytes32), 24, 8),
    )


@internal
@pure
def _hex_digits(account: address) -> (uint256, uint256):
    """
    @dev The 40 lower-case digits as text: the first 32 in one word, the last 8 at the end of another.
    """
    bits: uint256 = convert(convert(account, uint160), uint256)
    first: uint256 = 0
    last: uint256 = 0
    for i: uint256 in range(40):
        digit: uint256 = (bits >> (156 - 4 * i)) & 15
        letter: uint256 = digit + 48
        if digit > 9:
            letter = digit + 87
        if i < 32:
            first = (first << 8) | letter
        else:
            last = (last << 8) | letter
    return first, last
