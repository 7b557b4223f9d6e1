"""A process that runs an unmodified client of relayers: it reads requests of the tests, one a line.

`{"make", "url", "rpc", "key", "credentials"}` makes the client, `{"call", "args", "calls"}` calls a method
of it; `calls` are a batch, which becomes the method's first argument. The answer is `{"result"}` or
`{"status", "error"}`.
"""

import importlib
import json
import sys
from typing import Any

CHAIN_ID = 80002

make_client = importlib.import_module("py_builder_relayer_client.client").RelayClient
refused = importlib.import_module("py_builder_relayer_client.exceptions").RelayerApiException
make_call = importlib.import_module("py_builder_relayer_client.models").DepositWalletCall
make_config = importlib.import_module("py_builder_signing_sdk.config").BuilderConfig
make_credentials = importlib.import_module("py_builder_signing_sdk.sdk_types").BuilderApiKeyCreds

clients: list[Any] = []


def do(request: dict[str, Any]) -> Any:
    """Return the result of a request."""
    if "make" in request:
        credentials = make_credentials(**request["credentials"])
        clients[:] = [
            make_client(
                request["url"],
                CHAIN_ID,
                request["key"],
                make_config(local_builder_creds=credentials),
                rpc_url=request["rpc"],
            )
        ]
        return None
    args = request["args"]
    if request.get("calls"):
        args = [[make_call(**each) for each in request["calls"]], *args]
    result = getattr(clients[0], request["call"])(*args)
    return getattr(result, "transaction_id", result)


def main() -> None:
    for line in sys.stdin:
        try:
            answer = {"result": do(json.loads(line))}
        except refused as refusal:
            answer = {"status": refusal.status_code, "error": refusal.error_msg}
        sys.stdout.write("\n" + json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
