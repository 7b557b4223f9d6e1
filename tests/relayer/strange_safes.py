"""Contracts that answer as a Safe of one owner does, and then do something else.

An owner may have its Safe run any code, so nothing that a Safe does may be taken for granted. The
code is put together by hand, which is all that such small contracts need.
"""

from collections.abc import Mapping
from typing import Final

from tests.rigs.sandbox import Sandbox

from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address, keccak256

NONCE: Final = contract_function("nonce()").selector
THRESHOLD: Final = contract_function("getThreshold()").selector
OWNERS: Final = contract_function("getOwners()").selector
EXECUTION_FAILURE: Final = keccak256(b"ExecutionFailure(bytes32,uint256)")

PUSH0, MSTORE, JUMPI, JUMPDEST, DUP1, EQ, SHR, CALLDATALOAD, RETURN, LOG1 = (
    bytes([code]) for code in (0x5F, 0x52, 0x57, 0x5B, 0x80, 0x14, 0x1C, 0x35, 0xF3, 0xA1)
)


def push(value: bytes) -> bytes:
    return bytes([0x5F + len(value)]) + value


def store(at: int, word: bytes) -> bytes:
    return push(word) + push(bytes([at])) + MSTORE


def answer(*words: bytes) -> bytes:
    """Return code that answers these words."""
    stores = b"".join(store(32 * index, word) for index, word in enumerate(words))
    return stores + push(bytes([32 * len(words)])) + PUSH0 + RETURN


FAILS_QUIETLY: Final = push(EXECUTION_FAILURE) + push(bytes([64])) + PUSH0 + LOG1 + answer(b"\x01")
"""Logs that the call failed, and succeeds itself."""

SAYS_NOTHING: Final = answer(b"\x01")
"""Succeeds, and logs nothing at all."""


LOOPS: Final = bytes.fromhex("5b586001900356")
"""Runs until its gas is gone, wherever it stands."""


def answer_list(count: int) -> bytes:
    """Return code that answers a list of so many zero addresses."""
    size = (64 + 32 * count).to_bytes(3, "big")
    head = store(0, b"\x20") + store(32, count.to_bytes(3, "big"))
    return head + push(size) + PUSH0 + RETURN


def a_strange_safe(owner: Address, execution: bytes | None, nonce: bytes = b"\0") -> bytes:
    """Return the code of a Safe that executes like this; None burns all gas that there is."""
    owners = answer(b"\x20", b"\x01", bytes.fromhex(owner[2:]))
    branches = {NONCE: answer(nonce), THRESHOLD: answer(b"\x01"), OWNERS: owners}
    return by_selector(branches, LOOPS if execution is None else execution)


def by_selector(branches: Mapping[bytes, bytes], default: bytes) -> bytes:
    """Return code that runs the branch of the function that is called, or else the default."""
    head_bytes = 5 + len(branches) * 11
    places, body, at = [], b"", head_bytes + len(default)
    for branch in branches.values():
        places.append(at)
        body += JUMPDEST + branch
        at += 1 + len(branch)
    head = PUSH0 + CALLDATALOAD + push(b"\xe0") + SHR
    for selector, place in zip(branches, places, strict=True):
        head += DUP1 + push(selector) + EQ + push(place.to_bytes(2, "big")) + JUMPI
    assert len(head) == head_bytes
    return head + default + body


async def make_strange(sandbox: Sandbox, safe: Address, code: bytes) -> None:
    """Put other code where a Safe is."""
    await sandbox.rpc.send("anvil_setCode", safe, "0x" + code.hex())
