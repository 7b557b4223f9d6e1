"""The five HTTP APIs, the web app's own routes, and the operations of their documents."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.rigs.applications import BuildApp, openapi_document
from typing_extensions import override

from foretell.creation import routes as creation
from foretell.data import routes as data
from foretell.discovery import routes as discovery
from foretell.relayer import routes as relayer
from foretell.trading.routes import app as trading
from foretell.web import routes as web

BUILD_APPS: dict[str, BuildApp] = {
    "trading": trading.build_app,
    "creation": creation.build_app,
    "relayer": relayer.build_app,
    "data": data.build_app,
    "discovery": discovery.build_app,
    "web": web.build_app,
}
APIS = sorted(BUILD_APPS)


class DocumentedOperation(NamedTuple):
    """An operation of a document."""

    api: str
    method: str
    path: str
    content: dict[str, Any]

    @property
    def operation_id(self) -> str:
        identity: str = self.content["operationId"]
        return identity

    @property
    def responses(self) -> dict[str, Any]:
        responses: dict[str, Any] = self.content["responses"]
        return responses

    @override
    def __str__(self) -> str:
        return f"{self.api} {self.method} {self.path}"


def operations_of(api: str) -> Iterator[DocumentedOperation]:
    for path, methods in openapi_document(BUILD_APPS[api])["paths"].items():
        for method, content in methods.items():
            yield DocumentedOperation(api, method.upper(), path, content)


OPERATIONS = [operation for api in APIS for operation in operations_of(api)]
