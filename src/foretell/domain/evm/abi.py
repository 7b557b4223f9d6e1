"""Calldata of contract calls: a selector, then the arguments in 32-byte words.

Decoding accepts only the canonical encoding. Extra bytes, odd offsets or bits outside a type would
let two parties read the same call differently.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError, EncodingError

from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.values.hexadecimal import keccak256

SELECTOR_BYTES: Final = 4
WORD_BYTES: Final = 32


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
        return self.selector + encode(self.inputs, arguments)

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
            values: tuple[Any, ...] = decode(types, words)
            again = encode(types, values)
        except (DecodingError, EncodingError, OverflowError, UnicodeError) as error:
            raise MalformedCalldata(f"the encoded arguments of {self.signature}") from error
        if again != words:
            raise MalformedCalldata(f"exactly the encoded arguments of {self.signature}")
        return values


def word(number: int) -> bytes:
    """Return a number as a word, as calldata and packed records have it."""
    return number.to_bytes(WORD_BYTES)


def length_prefixed(content: bytes) -> bytes:
    """Return bytes as calldata has them: their length, and the bytes up to the next whole word."""
    return word(len(content)) + content + bytes(-len(content) % WORD_BYTES)


def contract_function(signature: str, outputs: str = "()") -> ContractFunction:
    """Return the function of a signature such as `transfer(address,uint256)`."""
    inputs = types_of(signature[signature.index("(") :])
    selector = keccak256(signature.encode())[:SELECTOR_BYTES]
    return ContractFunction(signature, inputs, types_of(outputs), selector)


def types_of(tuple_type: str) -> tuple[str, ...]:
    """Return the types within the parentheses, tuples kept whole."""
    types, depth, start = [], 0, 1
    for at, character in enumerate(tuple_type):
        depth += (character == "(") - (character == ")")
        if (character == "," and depth == 1) or (depth == 0 and at > start):
            types.append(tuple_type[start:at])
            start = at + 1
    return tuple(types)


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
