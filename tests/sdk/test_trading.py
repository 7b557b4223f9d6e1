import json
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.scripted_api import ScriptedApi, a_client
from tests.rigs.values import NOW_S, a_key, an_address

from foretell.bench.rigs.world import make_world
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.errors.command import KeyFileDamaged
from foretell.domain.exchange.order import OrderType, Side, SignatureType
from foretell.domain.values.credentials import Credentials, L2Signer, l1_digest
from foretell.domain.values.eip712 import Eip712Domain, address_of_key, recover_signer
from foretell.domain.values.hexadecimal import checksum_address
from foretell.sdk.http import HttpClient
from foretell.sdk.signing.signers import KeySigner
from foretell.sdk.signing.typed_data import key_request
from foretell.sdk.trader import Trader
from foretell.sdk.trading import TradingClient, Wallet, order_body

KEY = a_key("trader")
ADDRESS = address_of_key(KEY)
SAFE = an_address("safe")
SEPARATORS = make_world(a_key("world")).deployment.separators()
CREDENTIALS = Credentials("key", "c2VjcmV0", "pass")


@cache
def an_unused_client() -> HttpClient:
    """Return a client that sends nothing in these tests."""
    return HttpClient("http://api.example")


def a_trader(http: HttpClient, wallet: Wallet) -> TradingClient:
    return TradingClient(http, wallet, SANDBOX_CHAIN_ID, SEPARATORS, lambda: NOW_S)


@pytest.fixture
def api() -> ScriptedApi:
    return ScriptedApi()


@pytest.fixture
async def trader(api: ScriptedApi) -> AsyncIterator[TradingClient]:
    async with a_client(api) as http:
        trader = a_trader(http, Wallet(KEY))
        trader.credentials = CREDENTIALS
        yield trader


def test_a_wallet_trades_with_its_own_address_or_with_its_safe() -> None:
    own, safe = Wallet(KEY), Wallet(KEY, SAFE)
    assert (own.address, own.maker, own.signature_type) == (ADDRESS, ADDRESS, SignatureType.EOA)
    assert (safe.address, safe.maker, safe.signature_type) == (ADDRESS, SAFE, SignatureType.SAFE)


@given(
    side=st.sampled_from(Side),
    size=st.integers(1, 2**64),
    cost=st.integers(1, 2**64),
    salt=st.integers(0, 2**48 - 1),
    safe=st.sampled_from([None, SAFE]),
)
def test_an_order_is_signed_by_its_wallets_key(
    side: Side, size: int, cost: int, salt: int, safe: str | None
) -> None:
    wallet = Wallet(KEY, None if safe is None else SAFE)
    order = a_trader(an_unused_client(), wallet).sign_order("7", side, size, cost, salt)
    digest = bytes.fromhex(SEPARATORS.order_id(order)[2:])
    assert recover_signer(digest, order.signature) == order.signer == ADDRESS
    assert order.maker == wallet.maker
    pays, gets = (cost, size) if side is Side.BUY else (size, cost)
    assert (order.maker_amount, order.taker_amount) == (pays, gets)


def test_the_body_of_an_order_has_the_fields_of_the_interface() -> None:
    order = a_trader(an_unused_client(), Wallet(KEY, SAFE)).sign_order("7", Side.SELL, 5, 3, salt=9)
    assert order_body(order, "key", OrderType.FOK) == {
        "order": {
            "salt": 9,
            "maker": checksum_address(SAFE),
            "signer": checksum_address(ADDRESS),
            "taker": "0x" + "00" * 20,
            "tokenId": "7",
            "makerAmount": "5",
            "takerAmount": "3",
            "expiration": "0",
            "nonce": "0",
            "feeRateBps": "0",
            "side": "SELL",
            "signatureType": 2,
            "signature": "0x" + order.signature.hex(),
        },
        "owner": "key",
        "orderType": "FOK",
    }


@pytest.mark.anyio
async def test_credentials_are_created_by_a_signature_of_the_wallet(
    api: ScriptedApi, trader: TradingClient
) -> None:
    answer = {"apiKey": "other", "secret": "s", "passphrase": "p"}
    api.prepare("POST /auth/api-key", answer)
    assert await trader.create_key(3) == trader.credentials == Credentials("other", "s", "p")
    headers = api.received[0].headers
    digest = l1_digest(SANDBOX_CHAIN_ID, ADDRESS, headers["service_timestamp"], 3)
    assert (headers["service_nonce"], headers["service_timestamp"]) == ("3", str(NOW_S))
    assert recover_signer(digest, bytes.fromhex(headers["service_signature"][2:])) == ADDRESS


@pytest.mark.anyio
@pytest.mark.spec(116)
async def test_a_client_that_starts_again_signs_with_the_key_of_its_file(
    api: ScriptedApi, trader: TradingClient, tmp_path: Path
) -> None:
    trader.write_key(tmp_path / "key.json")
    again = a_trader(trader.http, Wallet(KEY))
    assert again.read_key(tmp_path / "key.json", CREDENTIALS.passphrase) == CREDENTIALS
    api.prepare("GET /data/orders", {"data": []})
    await again.get("/data/orders")
    signature = L2Signer(CREDENTIALS.secret).sign(str(NOW_S), "GET", "/data/orders", b"")
    assert api.received[0].headers["service_signature"] == signature


@pytest.mark.anyio
async def test_the_key_file_of_another_wallet_is_refused(
    trader: TradingClient, tmp_path: Path
) -> None:
    trader.write_key(tmp_path / "key.json")
    other = a_trader(trader.http, Wallet(a_key("other")))
    with pytest.raises(KeyFileDamaged, match="is of the address"):
        other.read_key(tmp_path / "key.json", CREDENTIALS.passphrase)
    assert other.credentials is None


@pytest.mark.anyio
async def test_a_private_request_is_signed_with_its_path_and_its_body(
    api: ScriptedApi, trader: TradingClient
) -> None:
    api.prepare("DELETE /order", {"canceled": []})
    await trader.send("DELETE", "/order", {"orderID": "0x01"})
    (seen,) = api.received
    signature = L2Signer("c2VjcmV0").sign(str(NOW_S), "DELETE", "/order", seen.body)
    assert json.loads(seen.body) == {"orderID": "0x01"}
    assert seen.headers["service_signature"] == signature
    assert seen.headers["service_passphrase"] == "pass"


@pytest.mark.anyio
async def test_the_query_of_a_private_request_is_not_signed(
    api: ScriptedApi, trader: TradingClient
) -> None:
    api.prepare("GET /data/orders", {"data": []})
    await trader.get("/data/orders", market="0x01")
    (seen,) = api.received
    assert seen.query == "market=0x01"
    signature = L2Signer("c2VjcmV0").sign(str(NOW_S), "GET", "/data/orders", b"")
    assert seen.headers["service_signature"] == signature


@pytest.mark.anyio
async def test_two_cancellations_with_the_same_words_are_two_requests(
    api: ScriptedApi, trader: TradingClient
) -> None:
    """The server would take a second one of the same second for the first, sent again."""
    api.prepare("DELETE /cancel-all", {"canceled": []})
    api.prepare("DELETE /orders", {"canceled": []})
    for _ in range(3):
        await trader.send("DELETE", "/cancel-all", None)
    await trader.send("DELETE", "/orders", ["0x01"])
    seconds = [int(each.headers["service_timestamp"]) for each in api.received]
    assert seconds == [NOW_S, NOW_S + 1, NOW_S + 2, NOW_S]
    signed = {each.headers["service_signature"] for each in api.requests("DELETE /cancel-all")}
    assert len(signed) == 3


@pytest.mark.anyio
async def test_a_key_is_requested_in_the_domain_that_the_server_names(api: ScriptedApi) -> None:
    """A domain with the installation's contract binds the signature to it."""
    contract = checksum_address(SAFE)
    domain = {"name": "Ours", "version": "1", "chainId": 137, "verifyingContract": contract}
    account = {"address": ADDRESS, "chainId": 137, "exchanges": [], "auth": {"domain": domain}}
    wallet = {"kind": "eoa", "address": ADDRESS, "isDeployed": True, "signatureType": 0}
    api.prepare("GET /auth/account", account | {"wallets": [wallet]})
    api.prepare("POST /auth/api-key", {"apiKey": "k", "secret": "c2VjcmV0", "passphrase": "p"})
    async with a_client(api) as http:
        trader = await Trader.open(http, KeySigner(KEY), lambda: NOW_S)
    assert (trader.chain_id, trader.maker) == (137, ADDRESS)
    signature = bytes.fromhex(api.received[1].headers["service_signature"][2:])
    typed = key_request(Eip712Domain("Ours", "1", 137, SAFE), ADDRESS, str(NOW_S), 0)
    assert recover_signer(typed.digest(), signature) == ADDRESS
