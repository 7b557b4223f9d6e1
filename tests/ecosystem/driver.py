"""A process in which unmodified clients live: it does what the tests tell it, line by line.

A line is JSON. `{"make", "host", "key", "signature_type", "funder"}` makes a client of that number,
`{"client", "call", "args", "kwargs", "keep"}` calls a method of it, `{"end"}` forgets it. Arguments
that are objects with `__type` become that type of the client, and `__kept` stands for an earlier
result. The answer is `{"result"}` or `{"status", "error"}`.
"""

import json
import sys
from typing import Any

import py_clob_client.clob_types as types
from py_clob_client.client import ClobClient
from py_clob_client.exceptions import PolyApiException

CHAIN_ID = 80002


class Living:
    """A client, and what it was told to keep."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.kept: dict[str, Any] = {}
        self.client = ClobClient(
            told["host"],
            chain_id=CHAIN_ID,
            key=told["key"],
            signature_type=told["signature_type"],
            funder=told["funder"],
        )

    def call(self, told: dict[str, Any]) -> Any:
        result = getattr(self.client, told["call"])(
            *self.value_of(told["args"]),
            **{name: self.value_of(each) for name, each in told["kwargs"].items()},
        )
        if told["keep"]:
            self.kept[told["keep"]] = result
        return plain(result)

    def value_of(self, given: Any) -> Any:
        """Return an argument as the client wants it."""
        if isinstance(given, list):
            return [self.value_of(each) for each in given]
        if isinstance(given, dict) and "__kept" in given:
            return self.kept[given["__kept"]]
        if isinstance(given, dict) and "__type" in given:
            fields = {name: self.value_of(each) for name, each in given.items() if name != "__type"}
            return getattr(types, given["__type"])(**fields)
        return given


living: dict[int, Living] = {}


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


def do(told: dict[str, Any]) -> Any:
    """Return what comes of a line."""
    if "make" in told:
        living[told["make"]] = Living(told)
        return None
    if "end" in told:
        del living[told["end"]]
        return None
    return living[told["client"]].call(told)


def main() -> None:
    for line in sys.stdin:
        try:
            answer = {"result": do(json.loads(line))}
        except PolyApiException as refusal:
            answer = {"status": refusal.status_code, "error": refusal.error_msg}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
