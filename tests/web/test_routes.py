import dataclasses
from collections.abc import AsyncIterator

import httpx
import pytest
from tests.rigs.sandbox import Sandbox
from tests.web.contexts import TOKEN, client_of

from foretell.web.context import WebContext
from foretell.web.routes import PAGES

pytestmark = pytest.mark.anyio

OWN = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
async def http(context: WebContext) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(context) as http:
        yield http


@pytest.mark.parametrize("path", PAGES)
async def test_every_page_of_the_app_has_an_address(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get(path.replace("{slug:str}", "rain").replace("{address:str}", "0x1"))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.text.startswith("<!doctype html>")
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_script_is_sent_compressed_and_kept(http: httpx.AsyncClient) -> None:
    answer = await http.get("/assets/index-1.js")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["cache-control"].endswith("immutable")
    plain = await http.get("/assets/index-1.js", headers={"accept-encoding": "identity"})
    assert plain.content == answer.content
    assert "content-encoding" not in plain.headers


@pytest.mark.parametrize(
    "path",
    ["/assets/missing.js", "/assets/..%2findex.html", "/assets/index-1.js.map", "/event", "/.env"],
)
async def test_other_paths_have_nothing(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_route")


async def test_the_configuration_names_the_apis(http: httpx.AsyncClient) -> None:
    answer = (await http.get("/config.json")).json()
    assert answer["apis"]["createMarket"] == "/create-market"
    assert answer["contracts"]["exchange"].startswith("0x")


async def test_an_app_that_is_not_built_says_how_to_build_it(context: WebContext) -> None:
    async with client_of(dataclasses.replace(context, files={})) as http:
        answer = await http.get("/")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "make run" in answer.text


async def test_the_sandboxs_wallets_need_the_token(http: httpx.AsyncClient) -> None:
    refused = await http.get("/sandbox/accounts")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "wrong_sandbox_token")
    foreign = await http.get("/sandbox/accounts", headers=OWN | {"host": "rebound.example"})
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (403, "foreign_host")
    assert len((await http.get("/sandbox/accounts", headers=OWN)).json()) == 10


async def test_a_wallet_signs_sends_and_asks(
    http: httpx.AsyncClient, fresh_sandbox: Sandbox
) -> None:
    address = fresh_sandbox.trader().address
    body = {"address": address, "digest": "0x" + "ab" * 32}
    signed = await http.post("/sandbox/sign", json=body, headers=OWN)
    assert len(signed.json()["signature"]) == 132
    sent = await http.post("/sandbox/send", json={"address": address, "to": address}, headers=OWN)
    asked = {"method": "eth_getTransactionReceipt", "params": [sent.json()["hash"]]}
    await fresh_sandbox.rpc.send("evm_mine")
    receipt = await http.post("/sandbox/chain", json=asked, headers=OWN)
    assert receipt.json()["result"]["status"] == "0x1"
    assert receipt.headers["cache-control"] == "no-store"


async def test_a_body_above_the_bound_is_refused(http: httpx.AsyncClient) -> None:
    answer = await http.post("/sandbox/send", content=b" " * (128 * 1024 + 1), headers=OWN)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


async def test_an_installation_on_a_real_chain_has_no_wallets(context: WebContext) -> None:
    async with client_of(dataclasses.replace(context, wallets=None)) as http:
        for path in ("accounts", "sign", "send", "chain"):
            assert (await http.get(f"/sandbox/{path}", headers=OWN)).status_code == 404


async def test_the_document_describes_exactly_the_routes_of_the_installation(
    context: WebContext,
) -> None:
    sandbox = {f"/sandbox/{name}" for name in ("accounts", "sign", "send", "chain")}
    for wallets, paths in ((context.wallets, sandbox), (None, set())):
        async with client_of(dataclasses.replace(context, wallets=wallets)) as http:
            document = (await http.get("/schema/openapi.json")).json()
        assert set(document["paths"]) == {"/config.json"} | paths
        assert document["servers"] == [{"url": ".."}]


async def test_what_the_chain_refuses_is_the_requests_fault(http: httpx.AsyncClient) -> None:
    asked = {"method": "eth_getBalance", "params": ["not an address", "latest"]}
    answer = await http.post("/sandbox/chain", json=asked, headers=OWN)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "rpc_refused")
