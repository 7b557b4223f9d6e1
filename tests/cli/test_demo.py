"""`foretell demo` with another market-creation worker."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from tests.rigs.in_process import Call
from tests.rigs.values import a_key

from foretell.bench.rigs.world import make_world
from foretell.domain.contracts.deployment import encode_deployment
from foretell.sandbox.ready import NOT_SEEDED, describe, write_ready
from foretell.settings import Settings

WITHIN_S = 60.0


class OtherWorker(HTTPServer):
    """A worker that refuses every request, and notes it."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        super().__init__(("127.0.0.1", 0), _Refusing)


class _Refusing(BaseHTTPRequestHandler):
    server: OtherWorker

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.send_error(501, "not this worker")

    def log_message(self, *_: object) -> None:  # type: ignore[explicit-override] # 3.11 has none
        """Print nothing."""


@pytest.fixture
def other() -> Iterator[OtherWorker]:
    with OtherWorker() as other:
        serving = threading.Thread(target=other.serve_forever)
        serving.start()
        yield other
        other.shutdown()
        serving.join(WITHIN_S)


@pytest.mark.spec(1)
def test_another_worker_creates_the_markets_when_the_setting_names_it(
    call: Call, settings: Settings, other: OtherWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each API has a base URL of its own; no other API of this sandbox answers."""
    deployment = make_world(a_key("demo")).deployment
    settings.data.mkdir(exist_ok=True)
    settings.deployment_file.write_bytes(encode_deployment(deployment))
    nowhere = "http://127.0.0.1:1"
    write_ready(settings.data, describe(nowhere, nowhere, deployment, NOT_SEEDED))
    monkeypatch.setenv("CREATE_MARKET_URL", f"http://127.0.0.1:{other.server_port}/worker")
    called = call("demo", "--data", str(settings.data))
    assert called.code == 1
    assert "501" in called.err
    assert other.paths == ["/worker/market-config"]
