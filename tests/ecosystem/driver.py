"""A process in which an unmodified client lives: it does what the tests tell it, line by line.

Arguments: host, private key, signature type, funder (`-` for the key's own address). A line is JSON
`{"call", "args", "kwargs", "keep"}`. Arguments that are objects with `__type` become that type of the
client, and `__kept` stands for an earlier result. The answer is `{"result"}` or `{"status", "error"}`.
"""

import json
import sys
from typing import Any

import py_clob_client.clob_types as types
from py_clob_client.client import ClobClient
from py_clob_client.exceptions import PolyApiException

CHAIN_ID = 80002

kept: dict[str, Any] = {}


def value_of(given: Any) -> Any:
    """Return an argument as the client wants it."""
    if isinstance(given, list):
        return [value_of(each) for each in given]
    if isinstance(given, dict) and "__kept" in given:
        return kept[given["__kept"]]
    if isinstance(given, dict) and "__type" in given:
        fields = {name: value_of(each) for name, each in given.items() if name != "__type"}
        return getattr(types, given["__type"])(**fields)
    return given


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


def main() -> None:
    host, key, signature_type, funder = sys.argv[1:5]
    client = ClobClient(
        host,
        chain_id=CHAIN_ID,
        key=key,
        signature_type=int(signature_type),
        funder=None if funder == "-" else funder,
    )
    for line in sys.stdin:
        told = json.loads(line)
        try:
            result = getattr(client, told["call"])(
                *value_of(told["args"]),
                **{name: value_of(each) for name, each in told["kwargs"].items()},
            )
            if told["keep"]:
                kept[told["keep"]] = result
            answer = {"result": plain(result)}
        except PolyApiException as refusal:
            answer = {"status": refusal.status_code, "error": refusal.error_msg}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
