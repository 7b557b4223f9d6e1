"""Calls of contracts' views, one or many in a round trip."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import bytes_of
from foretell.domain.errors.chain import ChainInconsistent, MalformedCalldata
from foretell.domain.evm.abi import ContractFunction
from foretell.domain.values.hexadecimal import Address, Bytes32

LATEST: Final = "latest"

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


def _request(call: ViewCall, at: BlockTag) -> list[object]:
    calldata = call.function.encode(*call.arguments)
    return [{"to": call.target, "data": "0x" + calldata.hex()}, at]


def _decoded(call: ViewCall, answer: object) -> Any:
    try:
        values = call.function.decode_result(bytes_of(answer, "eth_call"))
    except MalformedCalldata as error:
        raise ChainInconsistent(
            f"{call.target} does not answer {call.function.name} as that contract does"
        ) from error
    return values[0] if len(values) == 1 else values
