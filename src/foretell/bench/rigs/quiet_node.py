"""A node of a chain whose blocks it does not keep: no code anywhere, and every word is zero.

Processes that serve trading ask a node for nonces, and benchmarks have no chain. Each process repeats a
request every half a minute at most, so the node costs nearly nothing.
"""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import msgspec
from typing_extensions import override

from foretell.bench.rigs.world import CHAIN_ID

ZERO_WORD: Final = "0x" + "0" * 64
RESULTS: Final = {
    "eth_blockNumber": "0x1",
    "eth_chainId": hex(CHAIN_ID),
    "eth_getBlockByNumber": None,
    "eth_getCode": "0x",
    "eth_call": ZERO_WORD,
    "web3_clientVersion": "anvil/quiet",
}
"""It passes for a dev chain, because a deployment of the sandbox is served at no other node."""


@contextlib.contextmanager
def quiet_node() -> Iterator[str]:
    """Give the address of a node that runs in threads of this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer a request, or a batch of them."""
        request = msgspec.json.decode(self.rfile.read(int(self.headers["content-length"])))
        answer = (
            [_answer(each) for each in request] if isinstance(request, list) else _answer(request)
        )
        body = msgspec.json.encode(answer)
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, *_: object) -> None:
        """Log nothing."""


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] in RESULTS:
        return {**answer, "result": RESULTS[request["method"]]}
    return {**answer, "error": {"code": -32601, "message": "the method does not exist"}}
