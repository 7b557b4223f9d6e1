"""A process that runs unmodified clients: it reads requests of the tests, one a line.

The argument is the name of the client's package. A request is JSON. `{"make", "host", "key", "signature_type", "funder"}` makes a client of that number,
`{"client", "call", "args", "kwargs", "keep"}` calls a method of it, `{"end"}` forgets it. Arguments
that are objects with `__type` become that type of the client, and `__kept` stands for an earlier
result. The answer is `{"result"}` or `{"status", "error"}`.
"""

import importlib
import json
import sys
from typing import Any

CHAIN_ID = 80002
PACKAGE = sys.argv[1]

types = importlib.import_module(f"{PACKAGE}.clob_types")
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
        )

    def call(self, request: dict[str, Any]) -> Any:
        result = getattr(self.client, request["call"])(
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
            return self.kept[given["__kept"]]
        if isinstance(given, dict) and "__type" in given:
            fields = {name: self.value_of(each) for name, each in given.items() if name != "__type"}
            return getattr(types, given["__type"])(**fields)
        return given


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
    return clients[request["client"]].call(request)


def main() -> None:
    for line in sys.stdin:
        try:
            answer = {"result": do(json.loads(line))}
        except refused as refusal:
            answer = {"status": refusal.status_code, "error": refusal.error_msg}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
