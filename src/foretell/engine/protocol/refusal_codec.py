"""Refusals on a socket: the name of a class, and the arguments of its constructor.

The receiver calls the same constructor with the same arguments, so message and details are equal.
"""

import inspect
from collections.abc import Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, Final, NamedTuple, get_type_hints

import msgspec

from foretell.domain.errors import exchange, families, order, storage
from foretell.domain.errors.exchange import AnswerLost
from foretell.domain.errors.families import ForetellError, InvalidFields, Unavailable

MODULES: Final = (exchange, families, order, storage)
"""The modules that declare every refusal that an engine raises."""
LOCAL: Final = frozenset({InvalidFields})
"""Refusals of HTTP bodies: an engine raises none, and their arguments are not plain values."""


class EncodedRefusal(NamedTuple):
    """The class of a refusal, and the arguments of its constructor."""

    name: str
    positional: list[Any]
    named: dict[str, Any]


def encode_refusal(refusal: ForetellError) -> EncodedRefusal:
    """Return a refusal as it is sent.

    One that is not registered becomes one that is, and promises no more: that nothing was done is
    said only when it was.
    """
    if CLASS_BY_NAME.get(type(refusal).__name__) is not type(refusal):
        refusal = Unavailable(refusal.message) if refusal.definite else AnswerLost()
    positional, named = refusal.arguments
    return EncodedRefusal(type(refusal).__name__, list(positional), dict(named))


def decode_refusal(encoded: EncodedRefusal) -> ForetellError:
    """Return a refusal equal to the one that was sent; AnswerLost when this version cannot."""
    try:
        refusal_class, hints = CLASS_BY_NAME[encoded.name], HINTS_BY_NAME[encoded.name]
        positional = map(msgspec.convert, encoded.positional, hints.values())
        named = {name: msgspec.convert(value, hints[name]) for name, value in encoded.named.items()}
        return refusal_class(*positional, **named)
    except (KeyError, TypeError, msgspec.ValidationError):
        return AnswerLost()


def _hints(refusal_class: type[ForetellError]) -> dict[str, Any]:
    """Return the types of the constructor's arguments by their names, in their order."""
    constructor = refusal_class.__init__
    types = get_type_hints(constructor)
    names = list(inspect.signature(constructor).parameters)[1:]
    return {name: types[name] for name in names}


def _declared(module: ModuleType) -> Iterator[type[ForetellError]]:
    for declared in vars(module).values():
        if isinstance(declared, type) and issubclass(declared, ForetellError):
            yield declared


CLASS_BY_NAME: Final[Mapping[str, type[ForetellError]]] = MappingProxyType(
    {
        refusal_class.__name__: refusal_class
        for module in MODULES
        for refusal_class in _declared(module)
        if refusal_class not in LOCAL
    }
)
HINTS_BY_NAME: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {name: _hints(refusal_class) for name, refusal_class in CLASS_BY_NAME.items()}
)
