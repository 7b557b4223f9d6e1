"""A process that runs unmodified clients: it reads requests of the tests, one a line.

The argument is the name of the client's package. A request is JSON. `{"make", "host", "key", "signature_type",
"funder", "builder"}` makes a client of that number, `{"client", "call", "args", "kwargs", "keep"}` calls a method
of it, `{"client", "methods"}` lists them, `{"end"}` forgets it. A method of a part of the client has the part's
name before it. Arguments that are objects with `__type` become that type of the client, and `__kept` stands for
an earlier result, or for a field of it. The answer is `{"result"}`, `{"status", "error"}` if the server refused,
or `{"raised"}` if the client did.
"""

import importlib
import inspect
import json
import sys
from typing import Any

CHAIN_ID = 80002
PACKAGE = sys.argv[1]

types = importlib.import_module(f"{PACKAGE}.clob_types")
quotes = importlib.import_module(f"{PACKAGE}.rfq.rfq_types")
make_client = importlib.import_module(f"{PACKAGE}.client").ClobClient
refused = importlib.import_module(f"{PACKAGE}.exceptions").PolyApiException


class RunningClient:
    """A client, and the results that it keeps for later requests."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.kept: dict[str, Any] = {}
        self.client = make_client(
            request["host"],
            chain_id=CHAIN_ID,
            key=request["key"],
            signature_type=request["signature_type"],
            funder=request["funder"],
            **builder_of(request.get("builder")),
        )

    def methods(self) -> list[str]:
        """Return the names of the public methods, those of parts with the part's name before it."""
        parts = {"": self.client, "rfq.": self.client.rfq}
        return [
            before + name
            for before, part in parts.items()
            for name, _ in inspect.getmembers(part, inspect.ismethod)
            if not name.startswith("_")
        ]

    def call(self, request: dict[str, Any]) -> Any:
        result = field_of(self.client, request["call"].split("."))(
            *self.value_of(request["args"]),
            **{name: self.value_of(each) for name, each in request["kwargs"].items()},
        )
        if request["keep"]:
            self.kept[request["keep"]] = result
        return plain(result)

    def value_of(self, given: Any) -> Any:
        """Return an argument in the type that the client expects."""
        if isinstance(given, list):
            return [self.value_of(each) for each in given]
        if isinstance(given, dict) and "__kept" in given:
            name, *fields = given["__kept"].split(".")
            return field_of(self.kept[name], fields)
        if isinstance(given, dict) and "__type" in given:
            fields = {name: self.value_of(each) for name, each in given.items() if name != "__type"}
            kinds = types if hasattr(types, given["__type"]) else quotes
            return getattr(kinds, given["__type"])(**fields)
        return given


def builder_of(credentials: dict[str, Any] | None) -> dict[str, Any]:
    """Return the argument with which a client signs as a builder."""
    if credentials is None:
        return {}
    config = importlib.import_module("py_builder_signing_sdk.config").BuilderConfig
    kind = importlib.import_module("py_builder_signing_sdk.sdk_types").BuilderApiKeyCreds
    return {"builder_config": config(local_builder_creds=kind(**credentials))}


def field_of(value: Any, names: list[str]) -> Any:
    """Return a field of a field of a value."""
    for name in names:
        value = value[name] if isinstance(value, dict) else getattr(value, name)
    return value


clients: dict[int, RunningClient] = {}


def plain(value: Any) -> Any:
    """Return a result as JSON can carry it."""
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if hasattr(value, "dict"):
        return value.dict()
    return {name: plain(each) for name, each in vars(value).items()}


def do(request: dict[str, Any]) -> Any:
    """Return the result of a request."""
    if "make" in request:
        clients[request["make"]] = RunningClient(request)
        return None
    if "end" in request:
        del clients[request["end"]]
        return None
    if "methods" in request:
        return clients[request["client"]].methods()
    return clients[request["client"]].call(request)


def main() -> None:
    for line in sys.stdin:
        try:
            answer = {"result": do(json.loads(line))}
        except refused as refusal:
            answer = {"status": refusal.status_code, "error": refusal.error_msg}
        except Exception as error:  # noqa: BLE001 - the test judges what the client raises
            answer = {"raised": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
