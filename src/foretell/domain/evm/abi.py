"""Calldata of contract calls: a selector, then the arguments in 32-byte words.

Decoding accepts only the canonical encoding. Extra bytes, odd offsets or bits outside a type would
let two parties read the same call differently.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.evm.abi_values import decode_values, encode_values, types_of
from foretell.domain.values.hexadecimal import keccak256

SELECTOR_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class ContractFunction:
    """A function of a contract, with the types of its inputs and outputs."""

    signature: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    selector: bytes

    @property
    def name(self) -> str:
        """The name, without the types of the inputs."""
        return self.signature.partition("(")[0]

    def encode(self, *arguments: object) -> bytes:
        """Return the calldata of a call; a value outside its type is a programming error."""
        return self.selector + encode_values(self.inputs, arguments)

    def decode(self, calldata: bytes) -> tuple[Any, ...]:
        """Return the arguments of a call, or refuse calldata that is not exactly such a call."""
        if calldata[:SELECTOR_BYTES] != self.selector:
            raise MalformedCalldata(f"a call of {self.signature}")
        return self._decoded(self.inputs, calldata[SELECTOR_BYTES:])

    def decode_result(self, result: bytes) -> tuple[Any, ...]:
        """Return the values of a call's result, or refuse bytes of another type."""
        return self._decoded(self.outputs, result)

    def _decoded(self, types: tuple[str, ...], words: bytes) -> tuple[Any, ...]:
        try:
            return decode_values(types, words)
        except ValueError as error:
            raise MalformedCalldata(f"exactly the encoded arguments of {self.signature}") from error


def contract_function(signature: str, outputs: str = "()") -> ContractFunction:
    """Return the function of a signature such as `transfer(address,uint256)`."""
    inputs = types_of(signature[signature.index("(") :])
    selector = keccak256(signature.encode())[:SELECTOR_BYTES]
    return ContractFunction(signature, inputs, types_of(outputs), selector)


_ERROR_STRING: Final = contract_function("Error(string)")
_PANIC: Final = contract_function("Panic(uint256)")


def revert_reason(revert: bytes, name_by_selector: Mapping[bytes, str]) -> str | None:
    """Return the reason of a revert: its text, or the name of a known error."""
    try:
        if revert[:SELECTOR_BYTES] == _ERROR_STRING.selector:
            return str(_ERROR_STRING.decode(revert)[0])
        if revert[:SELECTOR_BYTES] == _PANIC.selector:
            return f"panic {_PANIC.decode(revert)[0]:#x}"
    except MalformedCalldata:
        return None
    return name_by_selector.get(revert[:SELECTOR_BYTES])
