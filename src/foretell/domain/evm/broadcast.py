"""Results of a broadcast, read from a node's refusal.

Nodes have no common error codes, and many messages for one cause, so the text decides. An unknown
text is uncertain: the transaction is looked up, and the same bytes may be broadcast again, which
does nothing at a node that has them.
"""

import enum
import re
from typing import Final


class BroadcastResult(enum.Enum):
    """The result of a broadcast."""

    ACCEPTED = "accepted"
    """The node has it, now or since before."""
    NONCE_USED = "nonce used"
    """A block has used the nonce, for one of our attempts or another transaction."""
    FEE_TOO_LOW = "fee too low"
    """The node, or the transaction that it would replace, requires higher fees."""
    LATER = "later"
    """The same bytes may be accepted later: funds, room or an earlier nonce is missing."""
    REFUSED = "refused"
    """The node never accepts these bytes."""
    UNCERTAIN = "uncertain"
    """The node's answer does not decide."""


_MESSAGES: Final = (
    (
        BroadcastResult.ACCEPTED,
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
        BroadcastResult.FEE_TOO_LOW,
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
        BroadcastResult.NONCE_USED,
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
        BroadcastResult.LATER,
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
        BroadcastResult.REFUSED,
        (
            "revert",
            "intrinsic gas",
            "exceeds block gas limit",
            "exceed block gas limit",
            "gas limit exceeded",
            "gaslimitexceeded",
            "gas limit too high",
            "exceeds the configured cap",
            "transaction fee cap exceeded",
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
    (result, re.compile(rf"\b(?:{'|'.join(map(re.escape, messages))})"))
    for result, messages in _MESSAGES
)


def result_of_refusal(message: str) -> BroadcastResult:
    """Return the result that a node's refusal means."""
    words = message.lower()
    for result, pattern in _PATTERNS:
        if pattern.search(words):
            return result
    return BroadcastResult.UNCERTAIN
