"""Trading through the reference proxy, over TLS alone."""

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
from tests.deploy.rig import Proxy, proxy_of
from tests.rigs.installation import Running
from tests.trading.rig import Listener
from websockets.asyncio.client import connect

from foretell.domain.contracts.deployment import parse_deployment
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.exchange.order import Side
from foretell.domain.values.credentials import Credentials, l1_digest
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import checksum_address
from foretell.sandbox.ready import Ready
from foretell.sdk.authentication import PREFIX
from foretell.sdk.http import HttpClient
from foretell.sdk.trading import TradingClient, Wallet

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e")]

SIZE_UNITS = 10_000_000
COST_UNITS = 100_000


def now_s() -> int:
    return int(time.time())


@pytest.fixture
def proxy(shared: Running, tmp_path: Path) -> Iterator[Proxy]:
    with proxy_of(f"127.0.0.1:{shared.port}", tmp_path) as proxy:
        yield proxy


@pytest.fixture
async def ready(shared: Running) -> Ready:
    return await shared.ready()


@pytest.fixture
async def trader(shared: Running, ready: Ready, proxy: Proxy) -> AsyncIterator[TradingClient]:
    """A trader that knows only the address of the proxy."""
    deployment = parse_deployment((shared.data / "deployment.json").read_bytes())
    wallet = Wallet(ready.account(AccountRole.TRADER).key)
    async with HttpClient(f"{proxy.url}/clob", proxy.trust) as http:
        yield TradingClient(http, wallet, ready.chain_id, deployment.separators(), now_s)


async def derived(trader: TradingClient, ready: Ready) -> Credentials:
    """Return the credentials of the trader, which exist already (L1)."""
    address, timestamp = trader.wallet.address, str(now_s())
    digest = l1_digest(ready.chain_id, address, timestamp, 0)
    headers = {
        "POLY_ADDRESS": checksum_address(address),
        "POLY_SIGNATURE": "0x" + sign_digest(digest, trader.wallet.private_key).hex(),
        "POLY_TIMESTAMP": timestamp,
        "POLY_NONCE": "0",
    }
    answer = await trader.http.get("/auth/derive-api-key", headers)
    return Credentials(answer["apiKey"], answer["secret"], answer["passphrase"])


def with_prefix(headers: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {prefix + name.removeprefix(PREFIX): value for name, value in headers.items()}


@pytest.mark.spec(105)
async def test_a_key_a_reading_an_order_and_a_stream_pass_the_proxy(
    trader: TradingClient, ready: Ready, proxy: Proxy
) -> None:
    credentials = await trader.create_key()
    assert await derived(trader, ready) == credentials
    headers = with_prefix(trader.l2_headers("GET", "/auth/api-keys"), "POLY_")
    keys = await trader.http.get("/auth/api-keys", headers)
    assert credentials.key_id in msgspec.json.encode(keys).decode()

    token = ready.market.token_yes
    async with connect(f"{proxy.stream_url}/clob/ws/user", ssl=proxy.trust, proxy=None) as stream:
        listener = Listener(stream)
        auth = {
            "apiKey": credentials.key_id,
            "secret": credentials.secret,
            "passphrase": credentials.passphrase,
        }
        await listener.send({"type": "user", "auth": auth})
        await listener.silence()
        order = trader.sign_order(token, Side.BUY, SIZE_UNITS, COST_UNITS, salt=now_s())
        placed = await trader.place(order)
        assert (placed["success"], placed["status"]) == (True, "live")
        (event,) = await listener.messages(1)
        assert (event["type"], event["id"]) == ("PLACEMENT", placed["orderID"])
        canceled = await trader.send("DELETE", "/order", {"orderID": placed["orderID"]})
        assert canceled["canceled"] == [placed["orderID"]]
        (event,) = await listener.messages(1)
        assert (event["type"], event["id"]) == ("CANCELLATION", placed["orderID"])


@pytest.mark.parametrize(
    "path", ["/", "/clob/time", "/create-market/", "/relayer/", "/data/", "/discovery/"]
)
async def test_every_api_answers_behind_the_proxy(proxy: Proxy, path: str) -> None:
    async with HttpClient(proxy.url, proxy.trust) as http:
        assert await http.get_text(path)
