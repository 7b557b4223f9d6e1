"""What a node's refusal of a broadcast means.

Nodes spell one thing in many ways and share no codes, so the words decide. What no rule knows is
uncertain: it is looked up, and the same bytes may be broadcast again, since bytes that a node has
already seen do nothing.
"""

import enum
import re
from typing import Final


class BroadcastAnswer(enum.Enum):
    """What became of a broadcast."""

    TAKEN = "taken"
    """The node has it, from now or from before."""
    NONCE_USED = "nonce used"
    """A block has used the nonce: for one of our attempts, or for something else."""
    FEE_TOO_LOW = "fee too low"
    """It, or what it would replace, asks for higher fees."""
    LATER = "later"
    """Not now: no funds, no room, or an earlier nonce is missing. The same bytes may pass later."""
    REFUSED = "refused"
    """Never, with these bytes."""
    UNCERTAIN = "uncertain"
    """The node did not say what became of it."""


_SPELLINGS: Final = (
    (
        BroadcastAnswer.TAKEN,
        (
            "already known",
            "alreadyknown",
            "already imported",
            "already exists",
            "already in mempool",
            "already in the mempool",
            "known transaction",
            "existing tx with same hash",
            "transaction already",
        ),
    ),
    (
        BroadcastAnswer.FEE_TOO_LOW,
        (
            "underpriced",
            "replacementnotallowed",
            "could not replace existing",
            "gas price is too low",
            "gas price too low",
            "gas price below",
            "feetoolow",
            "fee too low",
            "fee is too low",
            "max fee per gas less than block base fee",
            "maxfeepergas too low",
            "below current base fee",
            "below configured minimum",
            "below base fee",
            "cannot be less than block base fee",
        ),
    ),
    (
        BroadcastAnswer.NONCE_USED,
        (
            "nonce too low",
            "nonce is too low",
            "oldnonce",
            "nonce already used",
            "ownnoncealreadyused",
            "invalid nonce; got",
            "nonce has already been used",
        ),
    ),
    (
        BroadcastAnswer.LATER,
        (
            "insufficient funds",
            "insufficientfunds",
            "insufficient balance",
            "exceeds account balance",
            "upfront cost exceeds",
            "txpool is full",
            "pool is full",
            "mempool is full",
            "nonce too high",
            "nonce gap",
            "noncegap",
            "noncetoofarinfuture",
            "nonce too far",
            "too distant from current",
            "account limit exceeded",
            "in-flight transaction limit",
            "future transaction tries to replace pending",
        ),
    ),
    (
        BroadcastAnswer.REFUSED,
        (
            "revert",
            "intrinsic gas",
            "exceeds block gas limit",
            "exceed block gas limit",
            "gas limit exceeded",
            "gaslimitexceeded",
            "gas limit too high",
            "exceeds the configured cap",
            "oversized data",
            "transaction too large",
            "max initcode size exceeded",
            "invalid sender",
            "invalid signature",
            "invalid chain id",
            "chain id mismatch",
            "wrong chain",
            "incorrect chainid",
            "unknown transaction type",
            "transaction type not supported",
            "unsupported transaction type",
            "max priority fee per gas higher than max fee per gas",
            "gas uint64 overflow",
            "sender not an eoa",
            "invalid transaction",
        ),
    ),
)


_PATTERNS: Final = tuple(
    (answer, re.compile(rf"\b(?:{'|'.join(map(re.escape, spellings))})"))
    for answer, spellings in _SPELLINGS
)


def meaning_of_refusal(message: str) -> BroadcastAnswer:
    """Return what the words of a node's refusal mean."""
    words = message.lower()
    for answer, pattern in _PATTERNS:
        if pattern.search(words):
            return answer
    return BroadcastAnswer.UNCERTAIN
