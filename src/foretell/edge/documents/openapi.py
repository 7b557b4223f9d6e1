"""The OpenAPI document of an API, made from the descriptions beside its routes."""

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from inspect import cleandoc
from typing import Any, Final, NamedTuple

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from foretell.edge.documents.description import JSON, Body, Described, Success, description_of
from foretell.edge.documents.errors import Refusals
from foretell.edge.documents.examples import Examples
from foretell.edge.documents.path_parameters import ABOUT_BY_NAME
from foretell.edge.documents.schemas import Schemas
from foretell.edge.documents.security import Security, security_schemes

OPENAPI: Final = "3.1.0"
METHODS: Final = ("GET", "POST", "DELETE")
RETRY_AFTER: Final = {
    "retry-after": {"description": "Seconds to wait.", "schema": {"type": "integer"}}
}
BINARY: Final = {"type": "string", "format": "binary"}
_API: Final = "api"
_DOCUMENT: Final = "document"
WAITING: Final = frozenset({425, 429, 503})


class Api(NamedTuple):
    """What the document of an API begins with, and how the API refuses."""

    name: str
    title: str
    about: str
    refusals: Refusals


class RouteOperation(NamedTuple):
    """A method of a path."""

    method: str
    path: str
    operation_id: str
    handler: HTTPRouteHandler
    path_parameters: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its handler's name, which other paths may share."""
        return self.handler.handler_name

    @property
    def described(self) -> Described:
        """Its description."""
        return description_of(self.handler)


def operations_of(app: Litestar) -> Iterator[RouteOperation]:
    """Yield the operations that an application describes, in an order that is the same in every process."""
    for route in sorted(app.routes, key=lambda route: route.path_format):
        if not isinstance(route, HTTPRoute):
            continue
        names = tuple(part.name for part in route.path_components if not isinstance(part, str))
        for method, (handler, _) in sorted(
            route.route_handler_map.items(), key=lambda each: str(each[0])
        ):
            if method in METHODS and description_of(handler).is_shown:
                identity = _operation_id(handler, route.path_format)
                path = route.path_format or "/"
                yield RouteOperation(method, path, identity, handler, names)


def _operation_id(handler: HTTPRouteHandler, path: str) -> str:
    """Return the handler's name, with the path if several paths share the handler."""
    if len(handler.paths) == 1:
        return handler.handler_name
    words = path.translate(str.maketrans("/-", "__", "{}"))
    return f"{handler.handler_name}{words.rstrip('_')}"


def document_of(app: Litestar) -> dict[str, Any]:
    """Return the document of an application that `described_by` was passed to; it is made once."""
    document: dict[str, Any] | None = app.opt.get(_DOCUMENT)
    if document is None:
        document = app.opt[_DOCUMENT] = _Document(app, app.opt[_API]).content()
    return document


def described_by(api: Api) -> dict[str, Any]:
    """Return the `opt` of an application whose document begins with this."""
    return {_API: api}


IDEMPOTENCY_KEY: Final[dict[str, Any]] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Names the request: one with the same key and content gets the first answer for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$"},
}


class _Document:
    """The document of an application, while it is made."""

    def __init__(self, app: Litestar, api: Api) -> None:
        self._api = api
        self._schemas = Schemas()
        self._examples = Examples.of(api.name)
        self._levels: set[str] = set()
        self._operations = list(operations_of(app))

    def content(self) -> dict[str, Any]:
        """Return the document; its server is named relative to it, so it is right under a prefix too."""
        paths: dict[str, Any] = {}
        for operation in self._operations:
            paths.setdefault(operation.path, {})[operation.method.lower()] = self._show(operation)
        tags = dict.fromkeys(operation.described.tag for operation in self._operations)
        return {
            "openapi": OPENAPI,
            "info": {
                "title": self._api.title,
                "version": version("foretell"),
                "description": self._api.about,
            },
            "servers": [{"url": ".."}],
            "tags": [{"name": tag} for tag in tags],
            "paths": paths,
            "components": {
                "schemas": dict(sorted(self._schemas.components.items())),
                "securitySchemes": security_schemes(frozenset(self._levels)),
            },
        }

    def _show(self, operation: RouteOperation) -> dict[str, Any]:
        described = operation.described
        about = cleandoc(operation.handler.fn.__doc__ or "")
        shown = {
            "operationId": operation.operation_id,
            "summary": operation.handler.handler_name.replace("_", " ").capitalize(),
            "description": about,
            "tags": [described.tag],
            "parameters": list(self._parameters(operation)),
            "requestBody": self._body(operation, described.body),
            "responses": dict(self._responses(operation)),
            "security": self._security(described.security),
        }
        return {name: value for name, value in shown.items() if value not in (None, [])}

    def _parameters(self, operation: RouteOperation) -> Iterator[dict[str, Any]]:
        examples = self._examples.parameters(operation.name)
        meaning_by_name = {each.names[0]: each for each in operation.described.in_path}
        for name in operation.path_parameters:
            meaning = meaning_by_name.get(name)
            shown = _path_parameter(name) if meaning is None else meaning.document()
            yield shown | _example(examples.get(name))
        for parameter in operation.described.parameters:
            if parameter.is_documented:
                yield parameter.document() | _example(examples.get(parameter.names[0]))
        if operation.described.is_keyed:
            yield IDEMPOTENCY_KEY

    def _body(self, operation: RouteOperation, body: Body | None) -> dict[str, Any] | None:
        if body is None:
            return None
        schema = self._schemas.of_body(body.kind) if body.schema is None else body.schema
        example = _example(self._examples.request(operation.name))
        return {
            "required": body.is_required,
            "content": {body.media_type: {"schema": schema, **example}},
        }

    def _security(self, security: Security | None) -> list[dict[str, list[str]]] | None:
        if security is None:
            return None
        self._levels.update(security.levels)
        return security.requirements()

    def _responses(self, operation: RouteOperation) -> Iterator[tuple[str, dict[str, Any]]]:
        described = operation.described
        if described.answer.kind is not None:
            yield str(described.answer.status), self._answer(operation, described.answer)
        if described.answer.is_tagged:
            yield "304", {"description": "The client has the answer."}
        refusals = self._api.refusals
        for status, codes in refusals.codes_by_status(operation.method, described).items():
            example = self._examples.refusal(operation.name, status, codes)
            schema = self._schemas.of_answer(refusals.body)
            shown: dict[str, Any] = {
                "description": ", ".join(f"`{code}`" for code in codes),
                "x-codes": codes,
                "content": {JSON: {"schema": schema, **_example(example)}},
            }
            yield str(status), shown | ({"headers": RETRY_AFTER} if status in WAITING else {})

    def _answer(self, operation: RouteOperation, answer: Success) -> dict[str, Any]:
        schema = BINARY if answer.kind is bytes else self._schemas.of_answer(answer.kind)
        example = _example(self._examples.answer(operation.name, answer.status))
        shown: dict[str, Any] = {
            "description": answer.about,
            "content": {answer.media_type: {"schema": schema, **example}},
        }
        return shown | _headers(answer.headers)


def _headers(about_by_name: Mapping[str, str]) -> dict[str, Any]:
    if not about_by_name:
        return {}
    return {
        "headers": {
            name: {"description": about, "schema": {"type": "string"}}
            for name, about in about_by_name.items()
        }
    }


def _path_parameter(name: str) -> dict[str, Any]:
    """Return the entry of a part of a path, with its meaning where all APIs have one."""
    shown = {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    about = ABOUT_BY_NAME.get(name)
    return shown if about is None else shown | {"description": about}


def _example(value: Any) -> dict[str, Any]:
    return {} if value is None else {"example": value}
