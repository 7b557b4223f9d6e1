"""All classes of refusals, and an instance of each, for tests over all of them."""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import foretell.domain
import foretell.edge.refusals
from foretell.domain.errors.families import ForetellError


@cache
def every_refusal() -> list[type[ForetellError]]:
    """Return all classes of refusals, families included, sorted by name."""
    for module in pkgutil.walk_packages(foretell.domain.__path__, "foretell.domain."):
        importlib.import_module(module.name)
    kinds, found = [ForetellError], [ForetellError]
    while kinds:
        new = kinds.pop().__subclasses__()
        kinds += new
        found += new
    return sorted(set(found), key=lambda kind: kind.__name__)


def a_refusal(kind: type[ForetellError], text: str = "x") -> ForetellError:
    """Return a refusal of the class; each string among its arguments is `text`."""
    hints = get_type_hints(kind.__init__)
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    values: dict[str, Any] = {
        each.name: _value(hints[each.name], text)
        for each in parameters
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    }
    return kind(**values)


class AnyKey(dict[str, Any]):
    """A mapping with the keys that constructors of refusals read."""

    def __init__(self, text: str) -> None:
        super().__init__(id=text, slug=text, reason=text)


def _value(hint: Any, text: str) -> Any:
    kind = get_origin(hint) or hint
    some = [each for each in get_args(hint) if each is not NoneType]
    plain: dict[Any, Any] = {int: 7, bool: True, float: 7.0, bytes: text.encode()}
    if kind in plain:
        return plain[kind]
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return kind(*[_value(each, text) for each in get_type_hints(kind).values()])
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return {7: text} if some[:1] == [int] else AnyKey(text)
    if isinstance(kind, type) and issubclass(kind, Sequence) and kind is not str:
        return [_value(some[0], text)]
    return _value(some[0], text) if some else text
