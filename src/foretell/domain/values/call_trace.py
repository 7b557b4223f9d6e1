"""Traces of mined transactions: which calls failed, from the outermost to the one that failed first.

The form is that of the nodes' `callTracer`. A call that fails because one that it made failed ends with
it, so the path follows the last call of each failed one. A call whose failure was handled is on it only if the
failed call that made it called nobody after it.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from foretell.domain.values.hexadecimal import Address

TRANSFERS: Final = ("0x23b872dd", "0xf242432a", "0x2eb2c2d6")
"""Selectors of ERC-20 `transferFrom`, ERC-1155 `safeTransferFrom` and `safeBatchTransferFrom`."""
PAYER_END: Final = len("0x") + 8 + 64
ADDRESS_DIGITS: Final = 40

FRAMES_MAX: Final = 1_100
"""More than the depth of calls that a chain allows."""


class FailedCall(NamedTuple):
    """A call that failed: whom it called, and with how much gas.

    `payer` is whose assets it would have moved, if it is a transfer of a token.
    """

    target: Address
    gas: int
    payer: Address | None = None


def failed_calls(trace: object) -> list[FailedCall]:
    """Return the calls that failed because of each other, the outermost first; none of a malformed trace."""
    failed: list[FailedCall] = []
    frame = trace
    while isinstance(frame, Mapping) and frame.get("error") and len(failed) < FRAMES_MAX:
        failed.append(_call_of(frame))
        calls = frame.get("calls")
        frame = calls[-1] if isinstance(calls, list) and calls else None
    return failed


def _call_of(frame: Mapping[str, Any]) -> FailedCall:
    try:
        gas = int(str(frame.get("gas", "0x0")), 16)
    except ValueError:
        gas = 0
    return FailedCall(Address(str(frame.get("to", "")).lower()), gas, _payer_of(frame))


def _payer_of(frame: Mapping[str, Any]) -> Address | None:
    """Return the first argument of a transfer, which is whose assets it moves."""
    calldata = str(frame.get("input", ""))[:PAYER_END].lower()
    if len(calldata) < PAYER_END or not calldata.startswith(TRANSFERS):
        return None
    return Address("0x" + calldata[-ADDRESS_DIGITS:])
