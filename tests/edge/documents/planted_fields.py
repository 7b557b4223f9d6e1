"""Fields that a client may not set, planted in every object of a request's body."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from tests.rigs.applications import BuildApp, openapi_document
from typing_extensions import override

from foretell.store.database import Database
from foretell.store.tables import metadata

Schema = Mapping[str, Any]

COLUMNS: Final = {column.name for table in metadata.tables.values() for column in table.columns}
OTHERS: Final = {
    "isAdmin",
    "role",
    "owner",
    "state",
    "fee",
    "feeRateBps",
    "sizeMatched",
    "transactionID",
    "transactionHash",
    "createdAt",
    "__proto__",
    "constructor",
}
"""Names that no column has."""


def camel(name: str) -> str:
    """Return a column's name as a body would spell it."""
    first, *rest = name.split("_")
    return first + "".join(each.title() for each in rest)


NAMES: Final = frozenset(COLUMNS | OTHERS | {camel(each) for each in COLUMNS})
CANARIES: Final = ("canary of a client", 7_654_321_987)
"""Values that nothing in the exchange has by itself."""


class Change(NamedTuple):
    """An operation that is no read, and the schema of its body."""

    method: str
    path: str
    schema: Schema

    @override
    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def changes_of(build_app: BuildApp) -> list[Change]:
    """Return every operation of a product's document that is no read."""
    document = openapi_document(build_app)
    schemas: dict[str, Any] = document["components"]["schemas"]

    def resolved(part: Any) -> Any:
        if isinstance(part, list):
            return [resolved(each) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return resolved(schemas[part["$ref"].rpartition("/")[2]])
        return {name: resolved(each) for name, each in part.items()}

    return [
        Change(method.upper(), path, schema_of(resolved(operation.get("requestBody", {}))))
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method not in {"get", "head"}
    ]


def schema_of(body: Mapping[str, Any]) -> Schema:
    """Return the schema of a body, which has one media type or none."""
    for media in body.get("content", {}).values():
        schema: Schema = media["schema"]
        return schema
    return {}


def planted(
    body: Any, schemas: Sequence[Schema], canary: object, names: Iterable[str] = NAMES
) -> Any:
    """Return a body whose every object has each name that no schema of that object documents."""
    alternatives = [each for schema in schemas for each in alternatives_of(schema)]
    if isinstance(body, list):
        entries = [each["items"] for each in alternatives if "items" in each]
        return [planted(each, entries, canary, names) for each in body]
    if not isinstance(body, dict):
        return body
    fitting = [each.get("properties", {}) for each in alternatives if is_of_kind(each, body)]
    documented = {name for properties in fitting for name in properties}
    inner = {
        name: planted(value, [each[name] for each in fitting if name in each], canary, names)
        for name, value in body.items()
    }
    return dict.fromkeys(set(names) - documented, canary) | inner


def alternatives_of(schema: Schema) -> list[Schema]:
    """Return the schemas of which a body has one."""
    parts = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return [each for part in parts for each in alternatives_of(part)] if parts else [schema]


def is_of_kind(schema: Schema, body: Mapping[str, Any]) -> bool:
    """Return whether a schema is for bodies of this `type`, if it names one."""
    kinds = schema.get("properties", {}).get("type", {}).get("enum")
    return kinds is None or body.get("type") in kinds


Rows = dict[str, list[dict[str, Any]]]


async def rows_of(database: Database) -> Rows:
    """Return the rows of every table."""
    async with database.reading() as tx:
        return {
            table.name: [dict(row._mapping) for row in await tx.all(sa.select(table))]
            for table in metadata.sorted_tables
        }
