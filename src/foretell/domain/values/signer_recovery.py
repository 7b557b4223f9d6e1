"""Requests to the signer recovery and its answers, as bytes.

A request has 97 bytes: a digest and a normalized signature. An answer has 21: an outcome and the
address of the signer, which is zero unless one was recovered.
"""

from typing import Final

from foretell.domain.errors.exchange import EngineBusy, EngineRestarting
from foretell.domain.errors.families import ForetellError, MalformedSignature
from foretell.domain.values.hexadecimal import Address, address_of

DIGEST_BYTES: Final = 32
REQUEST_BYTES: Final = DIGEST_BYTES + 65
ANSWER_BYTES: Final = 21

NO_SIGNER: Final = 0
"""Outcome: no key can have made the signature."""
RECOVERED: Final = 1
"""Outcome: the address is the signer's."""
LATE: Final = 2
"""Outcome: the request has waited too long, or processes ended over it."""
CLOSED: Final = 3
"""Outcome: the recovery was closed before the request was answered."""


def answer_without_signer(outcome: int) -> bytes:
    """Return the answer of any outcome but RECOVERED."""
    assert outcome != RECOVERED
    return bytes([outcome]) + bytes(ANSWER_BYTES - 1)


def signer_of(answer: bytes) -> Address:
    """Return the signer in an answer.

    Raises MalformedSignature when there is none, EngineBusy when the answer is late, and
    EngineRestarting when the recovery was closed.
    """
    if answer[0] == RECOVERED:
        return address_of(answer[1:])
    raise _refusal(answer[0])


def _refusal(outcome: int) -> ForetellError:
    if outcome == NO_SIGNER:
        return MalformedSignature("the signature of a point on the curve")
    return EngineBusy() if outcome == LATE else EngineRestarting()
