"""JSON schemas of the types that handlers decode and encode.

A field of an answer is required unless it can be left out, and has no default: clients get what is sent.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final, get_args, get_origin

import msgspec
from msgspec import UnsetType

REFERENCE: Final = "#/components/schemas/{name}"
NUMBER: Final = {"type": "number"}

_DECIMAL: Final = msgspec.json.schema(Decimal)


class Schemas:
    """The schemas of some types, and the components that they refer to."""

    def __init__(self, reference: str = REFERENCE) -> None:
        self.components: dict[str, Any] = {}
        self._reference = reference
        self._schema_by_answer: dict[Any, Any] = {}

    def of_body(self, kind: Any) -> Any:
        """Return the schema of a type that is decoded."""
        return self._of(kind)

    def of_answer(self, kind: Any) -> Any:
        """Return the schema of a type that is encoded; most operations share the one of refusals."""
        if kind not in self._schema_by_answer:
            self._schema_by_answer[kind] = self._of(kind)
            for struct in structs_of([kind]):
                self._require_sent_fields(struct)
        return self._schema_by_answer[kind]

    def _of(self, kind: Any) -> Any:
        (schema,), components = msgspec.json.schema_components([kind], ref_template=self._reference)
        for name, component in components.items():
            self.components.setdefault(name, _adapted(component))
        return _adapted(schema)

    def _require_sent_fields(self, struct: type[msgspec.Struct]) -> None:
        """Change the component of a type that is encoded."""
        component = self.components[_component_name(struct)]
        component["required"] = list(component.get("required", ()))
        for field in msgspec.structs.fields(struct):
            component["properties"][field.encode_name].pop("default", None)
            if _is_always_sent(struct, field) and field.encode_name not in component["required"]:
                component["required"].append(field.encode_name)
        if not component["required"]:
            del component["required"]


def structs_of(kinds: Iterable[Any]) -> list[type[msgspec.Struct]]:
    """Return the structs that types consist of, each once."""
    found: dict[type[msgspec.Struct], None] = {}

    def visit(part: Any) -> None:
        if isinstance(part, msgspec.inspect.StructType):
            if part.cls in found:
                return
            found[part.cls] = None
        for value in _parts(part):
            visit(value)

    for kind in kinds:
        visit(msgspec.inspect.type_info(kind))
    return list(found)


def _parts(part: Any) -> Iterable[Any]:
    """Return the types within a type."""
    if isinstance(part, msgspec.inspect.StructType):
        return [field.type for field in part.fields]
    if isinstance(part, msgspec.inspect.UnionType):
        return part.types
    if isinstance(part, msgspec.inspect.DictType):
        return [part.value_type]
    if isinstance(part, msgspec.inspect.CollectionType):
        return [part.item_type]
    return part.item_types if isinstance(part, msgspec.inspect.TupleType) else ()


def _component_name(struct: Any) -> str:
    ((schema,), _) = msgspec.json.schema_components([struct], ref_template="{name}")
    return str(schema["$ref"])


def _is_always_sent(struct: Any, field: msgspec.structs.FieldInfo) -> bool:
    can_be_unset = UnsetType in get_args(field.type)
    config = (get_origin(struct) or struct).__struct_config__
    return not can_be_unset and (field.required or not config.omit_defaults)


def _adapted(schema: Any) -> Any:
    """Return a schema whose decimals are numbers, which they are in the JSON of answers.

    An array of anything says so, because generators of clients require it.
    """
    if schema == _DECIMAL:
        return dict(NUMBER)
    if isinstance(schema, dict):
        parts = {name: _adapted(part) for name, part in schema.items()}
        return {"items": {}, **parts} if schema.get("type") == "array" else parts
    return [_adapted(part) for part in schema] if isinstance(schema, list) else schema
