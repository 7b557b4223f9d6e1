"""The user channel over a lost connection: missed trades are read from the API, each state once."""

from contextlib import aclosing
from typing import Any

import pytest
from tests.rigs.scripted_api import ScriptedApi, a_client
from tests.rigs.values import NOW_S, a_key
from tests.sdk.streaming.test_streams import a_server, numbered

from foretell.domain.values.credentials import Credentials
from foretell.domain.values.eip712 import address_of_key
from foretell.sdk.orders import AccountTerms, WalletTerms
from foretell.sdk.signing.signers import KeySigner
from foretell.sdk.streaming import account_stream
from foretell.sdk.streaming.account_stream import OVERLAP_S, watch_account
from foretell.sdk.trader import Trader

pytestmark = pytest.mark.anyio

KEY = a_key("watcher")


def a_trade(number: int, status: str) -> dict[str, Any]:
    return {
        "id": f"trade-{number}", "taker_order_id": "0x01", "market": "0x02", "asset_id": "7",
        "side": "BUY", "size": "1", "price": "0.5", "status": status, "trader_side": "TAKER",
        "match_time": str(NOW_S + number),
    }  # fmt: skip


def a_message(number: int, status: str) -> dict[str, Any]:
    return a_trade(number, status) | {"event_type": "trade"}


async def watched(api: ScriptedApi, url: str, count: int) -> list[tuple[str, str, bool]]:
    """Return the trades of the first messages, each with its state and whether it was missed."""
    address = address_of_key(KEY)
    account = AccountTerms(address, 80002, [WalletTerms("eoa", address, True, 0)], [])  # noqa: FBT003
    seen: list[tuple[str, str, bool]] = []
    async with a_client(api) as http:
        trader = Trader(http, KeySigner(KEY), account, lambda: NOW_S)
        trader.credentials = Credentials("key", "c2VjcmV0", "pass")
        async with aclosing(watch_account(trader, url)) as messages:
            async for message in messages:
                if message["event_type"] == "trade":
                    seen.append((message["id"], message["status"], message.get("missed", False)))
                if len(seen) == count:
                    return seen
    raise AssertionError("the stream ended")


async def test_states_that_were_missed_follow_a_reconnection_once() -> None:
    api = ScriptedApi()
    rows = [a_trade(3, "MATCHED"), a_trade(2, "CONFIRMED"), a_trade(1, "MATCHED")]
    api.prepare("GET /data/trades", {"data": rows, "next_cursor": "LTE="})
    first = numbered(a_message(1, "MATCHED"), {"event_type": "order"})
    second = numbered({"event_type": "order"}, a_message(3, "MINED"))
    async with a_server(first, second) as (url, _):
        assert await watched(api, url, 4) == [
            ("trade-1", "MATCHED", False),
            ("trade-2", "CONFIRMED", True),
            ("trade-3", "MATCHED", True),
            ("trade-3", "MINED", False),
        ]
    assert api.received[0].query == f"after={NOW_S + 1 - OVERLAP_S}"


async def test_only_the_newest_states_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest one is forgotten, so that it is repeated rather than lost."""
    monkeypatch.setattr(account_stream, "TRADES_KNOWN_MAX", 1)
    api = ScriptedApi()
    rows = [a_trade(2, "MATCHED"), a_trade(1, "MATCHED")]
    api.prepare("GET /data/trades", {"data": rows, "next_cursor": "LTE="})
    first = numbered(a_message(1, "MATCHED"), a_message(2, "MATCHED"))
    async with a_server(first, numbered({"event_type": "order"})) as (url, _):
        seen = await watched(api, url, 3)
    assert seen[2] == ("trade-1", "MATCHED", True)
