"""Calls of contracts' views, one or many in a round trip.

A contract that a client names is code that we do not know: every call of it has a bound on its gas, on the
bytes of its answer and on the words that are decoded.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import bytes_of
from foretell.domain.errors.chain import (
    AnswerTooLarge,
    ChainInconsistent,
    ChainUnavailable,
    ExecutionReverted,
    MalformedCalldata,
    RpcRefused,
)
from foretell.domain.evm.abi import ContractFunction, contract_function
from foretell.domain.values.hexadecimal import Address, Bytes32

LATEST: Final = "latest"

SIGNATURE_GAS_MAX: Final = 340_000
"""Gas of a call to a contract that a client names, such as a wallet that is asked for its signature.

It is what the exchange gives a wallet, and the call itself.
"""
SIGNATURE_ANSWER_BYTES_MAX: Final = 16 * 1024
"""Bytes of the node's response to such calls."""
LISTED_ADDRESSES_MAX: Final = 100
"""The owners of a wallet, or the proposers of a whitelist, that are decoded; with more it is none."""

_VIEW_BYTES_MAX: Final = 32 * (2 + LISTED_ADDRESSES_MAX)

_OWED_TOKENS: Final = contract_function("owedTokens(address,uint256)", "(uint256)")
_IS_VALID_SIGNATURE: Final = contract_function("isValidSignature(bytes32,bytes)", "(bytes4)")

_NOT_FOUND_CODE: Final = -32001
"""The code of EIP-1474 for a resource that the node does not have."""
_NOT_FOUND: Final = re.compile(
    "(?:header|block|hash).*not found|unknown block|not (?:currently )?canonical|outofrange"
    "|missing trie node|state.*(?:not available|unavailable|pruned)",
    re.IGNORECASE,
)
"""The words of nodes without a block, or without the state at it."""

BlockTag = str | Mapping[str, object]
"""A block: its number or a word, or its hash in the form of EIP-1898."""


def at_block(block_hash: Bytes32) -> BlockTag:
    """Return the tag of exactly this block, which a node refuses once it is not on its chain."""
    return {"blockHash": block_hash, "requireCanonical": True}


class ViewCall(NamedTuple):
    """A view of a contract, with its arguments."""

    target: Address
    function: ContractFunction
    arguments: tuple[object, ...] = ()


async def call_view(rpc: Rpc, call: ViewCall, at: BlockTag = LATEST) -> Any:
    """Return the result of a view: its one value, or the tuple of its values."""
    return (await call_views(rpc, [call], at))[0]


async def call_views(rpc: Rpc, calls: list[ViewCall], at: BlockTag = LATEST) -> list[Any]:
    """Return the results of views, in their order; one that reverts fails all of them."""
    answers = await rpc.batch([("eth_call", _request(call, at)) for call in calls])
    return [_decoded(call, answer) for call, answer in zip(calls, answers, strict=True)]


async def bounded_views(rpc: Rpc, calls: Sequence[ViewCall], at: BlockTag = LATEST) -> list[Any]:
    """Return the results of views of contracts that a client names, in their order and in one round trip.

    None stands for a view that reverts, breaks off, or answers otherwise than such a contract does. When the
    answers are too large together, all are None.

    Raises RpcRefused when the node does not run a call, as without the block.
    """
    asked = [
        ("eth_call", [{**_call_object(call), "gas": hex(SIGNATURE_GAS_MAX)}, at]) for call in calls
    ]
    try:
        answers = await rpc.send_all(asked, answer_bytes_max=SIGNATURE_ANSWER_BYTES_MAX)
    except AnswerTooLarge:
        return [None] * len(calls)
    return [_bounded(call, answer) for call, answer in zip(calls, answers, strict=True)]


def _bounded(call: ViewCall, answer: object) -> Any:
    if isinstance(answer, ExecutionReverted):
        return None
    if isinstance(answer, RpcRefused):
        raise answer
    if len(bytes_of(answer, "eth_call")) > _VIEW_BYTES_MAX:
        return None
    try:
        return _decoded(call, answer)
    except ChainInconsistent:
        return None


def _request(call: ViewCall, at: BlockTag) -> list[object]:
    return [_call_object(call), at]


def _call_object(call: ViewCall) -> dict[str, str]:
    return {"to": call.target, "data": "0x" + call.function.encode(*call.arguments).hex()}


def _decoded(call: ViewCall, answer: object) -> Any:
    try:
        values = call.function.decode_result(bytes_of(answer, "eth_call"))
    except MalformedCalldata as error:
        raise ChainInconsistent(
            f"{call.target} does not answer {call.function.name} as that contract does"
        ) from error
    return values[0] if len(values) == 1 else values


async def owed_units(rpc: Rpc, account: Address, keys: Sequence[tuple[Address, str]]) -> list[int]:
    """Return what each exchange keeps of a token for an account, in one round trip for each exchange.

    An exchange of an earlier deployment has no such view, and keeps nothing.
    """
    units_by_key: dict[tuple[Address, str], int] = {}
    for exchange in sorted({exchange for exchange, _ in keys}):
        own = [key for key in keys if key[0] == exchange]
        calls = [ViewCall(exchange, _OWED_TOKENS, (account, int(token))) for _, token in own]
        try:
            found = await call_views(rpc, calls)
        except ExecutionReverted:
            found = [0] * len(own)
        units_by_key.update(zip(own, map(int, found), strict=True))
    return [units_by_key[key] for key in keys]


async def revert_of_call(rpc: Rpc, call: Mapping[str, str], at: str) -> ExecutionReverted | None:
    """Return the revert that a call would end in at a block, or None when it would succeed."""
    try:
        await rpc.call("eth_call", call, at)
    except ExecutionReverted as reverted:
        return reverted
    return None


def lacks_block(refusal: RpcRefused) -> bool:
    """Return whether a node refused a call because it does not have the block, or no longer its state."""
    if isinstance(refusal, ExecutionReverted):
        return False
    return refusal.rpc_code == _NOT_FOUND_CODE or bool(_NOT_FOUND.search(refusal.rpc_message))


async def accepts_signature(
    rpc: Rpc, wallet: Address, digest: bytes, signature: bytes, at: BlockTag = LATEST
) -> bool:
    """Return whether a contract wallet accepts a signature, with the gas and the answer bounded.

    A wallet that reverts, breaks off or answers more than a word does not accept it.

    Raises ChainUnavailable when the node does not have the block.
    """
    call = {
        "to": wallet,
        "data": "0x" + _IS_VALID_SIGNATURE.encode(digest, signature).hex(),
        "gas": hex(SIGNATURE_GAS_MAX),
    }
    try:
        answer = await rpc.send("eth_call", call, at, answer_bytes_max=SIGNATURE_ANSWER_BYTES_MAX)
    except AnswerTooLarge:
        return False
    except RpcRefused as refusal:
        if lacks_block(refusal):
            raise ChainUnavailable("eth_call", "the node does not have the block") from refusal
        return False
    return bytes_of(answer, "eth_call") == _IS_VALID_SIGNATURE.selector.ljust(32, b"\0")
