"""A process that runs an unmodified client of relayers: it reads requests of the tests, one a line.

`{"make", "url", "rpc", "key", "credentials"}` makes the client; with `proxy_chain` it is one of proxy wallets, made for
that chain. `{"call", "args", "calls"}` calls a method of it, `{"methods"}` lists them; `calls` are a batch, which
becomes the method's first argument. An object with `__type` becomes that type of the client, and `__kept` stands for an
earlier result. The answer is `{"result"}`, `{"status", "error"}` if the server refused, or `{"raised"}` if the client
did.
"""

import importlib
import inspect
import json
import sys
from typing import Any

CHAIN_ID = 80002

make_client = importlib.import_module("py_builder_relayer_client.client").RelayClient
refused = importlib.import_module("py_builder_relayer_client.exceptions").RelayerApiException
models = importlib.import_module("py_builder_relayer_client.models")
make_config = importlib.import_module("py_builder_signing_sdk.config").BuilderConfig
make_credentials = importlib.import_module("py_builder_signing_sdk.sdk_types").BuilderApiKeyCreds

clients: list[Any] = []
kept: dict[str, Any] = {}


def do(request: dict[str, Any]) -> Any:
    """Return the result of a request."""
    if "make" in request:
        credentials = make_credentials(**request["credentials"])
        is_proxy = "proxy_chain" in request
        clients[:] = [
            make_client(
                request["url"],
                request.get("proxy_chain", CHAIN_ID),
                request["key"],
                make_config(local_builder_creds=credentials),
                rpc_url=request["rpc"],
                **({"relay_tx_type": models.RelayerTxType.PROXY} if is_proxy else {}),
            )
        ]
        return None
    if "methods" in request:
        found = inspect.getmembers(clients[0], inspect.ismethod)
        return [name for name, _ in found if not name.startswith("_")]
    args = value_of(request["args"])
    if request.get("calls"):
        args = [[models.DepositWalletCall(**each) for each in request["calls"]], *args]
    result = getattr(clients[0], request["call"])(*args)
    result = getattr(result, "transaction_id", result)
    if request.get("keep"):
        kept[request["keep"]] = result
    return result


def value_of(given: Any) -> Any:
    """Return an argument in the type that the client expects."""
    if isinstance(given, list):
        return [value_of(each) for each in given]
    if isinstance(given, dict) and "__kept" in given:
        return kept[given["__kept"]]
    if isinstance(given, dict) and "__type" in given:
        fields = {name: value_of(each) for name, each in given.items() if name != "__type"}
        kind = getattr(models, given["__type"])
        return kind[fields["name"]] if "name" in fields else kind(**fields)
    return given


def main() -> None:
    for line in sys.stdin:
        try:
            answer = {"result": do(json.loads(line))}
        except refused as refusal:
            answer = {"status": refusal.status_code, "error": refusal.error_msg}
        except Exception as error:  # noqa: BLE001 - the test judges what the client raises
            answer = {"raised": f"{type(error).__name__}: {error}"}
        sys.stdout.write("\n" + json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
