# pragma version 0.4.3
"""
@title Parameters
@license Apache-2.0
@notice What the admin sets of the exchange, in one word that a match reads once: the fee receiver, the
        limit of fees on v2 orders, a rise of it that was announced, and whether trading is paused.
"""

RECEIVER: constant(uint256) = 2**160 - 1

# The limit, the next one, and the second when that begins. The next one is never lower.
RATE: constant(uint256) = 2**16 - 1
RATE_AT: constant(uint256) = 160
NEXT_AT: constant(uint256) = 176
STARTS: constant(uint256) = 2**63 - 1
STARTS_AT: constant(uint256) = 192
LIMITS: constant(uint256) = (2**95 - 1) << RATE_AT

PAUSED: constant(uint256) = 1 << 255

word: uint256
