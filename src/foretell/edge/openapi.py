"""What the OpenAPI document says of query parameters that handlers read by name.

Handlers read their query themselves (`query.py`), so that refusals have each API's own words; what
they take is told here, beside the route.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib.metadata import version
from typing import Any

from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import OpenAPIType, Operation, Parameter, Schema, Server
from litestar.typing import FieldDefinition

from foretell.edge.parameters import Parameter as Declared


def texts(name: str, about: str, *, required: bool = False) -> Parameter:
    """Return a text parameter."""
    return _parameter(name, about, Schema(type=OpenAPIType.STRING), required=required)


def lists(name: str, about: str, *, required: bool = False) -> Parameter:
    """Return a list parameter: comma-separated, and taken when repeated too."""
    schema = Schema(type=OpenAPIType.ARRAY, items=Schema(type=OpenAPIType.STRING))
    parameter = _parameter(name, about, schema, required=required)
    return replace(parameter, style="form", explode=False)


def integers(name: str, default: int | None, least: int, most: int, about: str = "") -> Parameter:
    """Return an integer parameter of a range."""
    schema = Schema(type=OpenAPIType.INTEGER, default=default, minimum=least, maximum=most)
    return _parameter(name, about, schema)


def numbers(name: str, about: str, default: int | None = None) -> Parameter:
    """Return a decimal parameter that is not negative."""
    return _parameter(name, about, Schema(type=OpenAPIType.NUMBER, default=default, minimum=0))


def booleans(name: str, about: str, *, default: bool | None = None) -> Parameter:
    """Return a boolean parameter."""
    return _parameter(name, about, Schema(type=OpenAPIType.BOOLEAN, default=default))


def choices(name: str, about: str, among: Sequence[str], default: str | None = None) -> Parameter:
    """Return a parameter that is one of some words, in any case."""
    schema = Schema(type=OpenAPIType.STRING, enum=list(among), default=default)
    return _parameter(name, about, schema)


class DecimalsAreNumbers:
    """Decimals leave as JSON numbers, so the document says so."""

    @staticmethod
    def is_plugin_supported_type(value: Any) -> bool:
        """Return whether a field holds a decimal."""
        return value is Decimal

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: Any) -> Schema:
        """Return what a decimal is described as."""
        del field_definition, schema_creator
        return Schema(type=OpenAPIType.NUMBER)


def taking(*parameters: Parameter | Declared[Any]) -> type[Operation]:
    """Return the class of an operation that takes these parameters, and `strict`."""
    strict = booleans("strict", "whether unknown parameters are refused", default=False)
    documents = [each.document() if isinstance(each, Declared) else each for each in parameters]

    @dataclass
    class Documented(Operation):
        def __post_init__(self) -> None:
            self.parameters = [*(self.parameters or ()), *documents, strict]

    return Documented


def takes_parameters(handler: HTTPRouteHandler) -> bool:
    """Return whether a route says that it takes query parameters."""
    return handler.operation_class is not Operation


def answering(kind: Any, about: str) -> dict[int, ResponseSpec]:
    """Return the description of an answer that succeeds."""
    return {200: ResponseSpec(data_container=kind, description=about, generate_examples=False)}


def holding(media_type: str, about: str) -> dict[int, ResponseSpec]:
    """Return the description of an answer that is bytes of a media type and no JSON."""
    spec = ResponseSpec(bytes, description=about, generate_examples=False, media_type=media_type)
    return {200: spec}


def documented(title: str, description: str) -> OpenAPIConfig:
    """Return what the document says of an API as a whole; it is served at /schema/openapi.json.

    The server is named relative to the document, so it is right under a prefix too. No page renders
    the document: those that there are fetch their scripts from other people's servers.
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
    """Return the handler's name with the path, since several paths may have one handler."""
    del method
    names = [part if isinstance(part, str) else part.name for part in components]
    return "_".join([handler.handler_name, *names]).replace("-", "_")


def _parameter(name: str, about: str, schema: Schema, *, required: bool = False) -> Parameter:
    return Parameter(
        name=name, param_in="query", description=about, required=required, schema=schema
    )
