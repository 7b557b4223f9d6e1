"""The OpenAPI document of an API: its query parameters, its answers and its head.

Handlers read their query themselves (`query.py`), so that refusals have each API's own words. A route
passes the parameters that its handler reads to `operation_with`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import version
from typing import Any, Final

from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import OpenAPIType, Operation, Schema, Server
from litestar.typing import FieldDefinition

from foretell.edge.parameters import Parameter, boolean

STRICT: Final = boolean("strict", "whether unknown parameters are refused", default=False)
"""Taken by every route that takes parameters."""


class DecimalsAreNumbers:
    """Describes decimals as numbers, which they are in the JSON of answers."""

    @staticmethod
    def is_plugin_supported_type(value: Any) -> bool:
        """Return whether a field is a decimal."""
        return value is Decimal

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: Any) -> Schema:
        """Return the schema of a decimal."""
        del field_definition, schema_creator
        return Schema(type=OpenAPIType.NUMBER)


def operation_with(*parameters: Parameter[Any]) -> type[Operation]:
    """Return the class of an operation that takes these parameters, and `strict`."""
    documents = [each.document() for each in (*parameters, STRICT) if each.is_documented]

    @dataclass
    class Documented(Operation):
        def __post_init__(self) -> None:
            self.parameters = [*(self.parameters or ()), *documents]

    return Documented


def takes_parameters(handler: HTTPRouteHandler) -> bool:
    """Return whether a route declares query parameters."""
    return handler.operation_class is not Operation


def json_responses(kind: Any, about: str) -> dict[int, ResponseSpec]:
    """Return the description of a successful answer in JSON."""
    return {200: ResponseSpec(data_container=kind, description=about, generate_examples=False)}


def media_responses(media_type: str, about: str) -> dict[int, ResponseSpec]:
    """Return the description of a successful answer of another media type."""
    spec = ResponseSpec(bytes, description=about, generate_examples=False, media_type=media_type)
    return {200: spec}


def openapi_config(title: str, description: str) -> OpenAPIConfig:
    """Return the head of the document, which is served at /schema/openapi.json.

    The server is named relative to the document, so it is right under a prefix too. No page renders
    the document: the available ones load scripts from third-party servers.
    """
    return OpenAPIConfig(
        title=title,
        version=version("foretell"),
        description=description,
        operation_id_creator=_operation_id,
        servers=[Server(url="..")],
        path="/schema",
        render_plugins=[JsonRenderPlugin(path="/openapi.json")],
    )


def _operation_id(handler: HTTPRouteHandler, method: object, components: Sequence[Any]) -> str:
    """Return the handler's name with the path, because several paths may share a handler."""
    del method
    names = [part if isinstance(part, str) else part.name for part in components]
    return "_".join([handler.handler_name, *names]).replace("-", "_")
