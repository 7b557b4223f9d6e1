import json
from typing import Any

import pytest
import sqlalchemy as sa
from tests.edge.secret_forms import forms_in
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy, a_word
from tests.trading.rig import Listener, expect_refusal, listening

from foretell.trading.streams.user_channel import MARKETS_PER_CONNECTION_MAX

pytestmark = pytest.mark.anyio

MARKET = a_word("market")
REFUSED = "Unauthorized/Invalid api key"


@pytest.mark.parametrize("name", ["apiKey", "apikey", "api_key", "key"])
async def test_a_key_may_have_several_names(host: str, alice: Trader, name: str) -> None:
    auth = {name: alice.key_id, "secret": alice.secret, "passphrase": alice.passphrase}
    async with listening(host, "/ws/user") as listener:
        await listener.send({"type": "USER", "auth": auth, "markets": [], "initial_dump": True})
        await listener.silence()
        await alice.placed(a_buy("alice"))
        assert (await listener.message())["type"] == "PLACEMENT"


@pytest.mark.parametrize(
    "changed",
    [
        {"apiKey": "nobody's"},
        {"secret": "x"},
        {"passphrase": "x"},
        {"secret": ""},
        None,
    ],
)
async def test_unknown_credentials_are_refused_and_the_connection_closed(
    host: str, alice: Trader, changed: dict[str, str] | None
) -> None:
    auth = {"apiKey": alice.key_id, "secret": alice.secret, "passphrase": alice.passphrase}
    message: dict[str, Any] = {"type": "user"}
    message |= {} if changed is None else {"auth": auth | changed}
    async with listening(host, "/ws/user") as listener:
        await listener.send(message)
        assert (await listener.message())["error"] == "Unauthorized/Invalid api key"
        assert await listener.close_code() == 1008


@pytest.mark.spec(52)
async def test_no_message_of_a_stream_repeats_a_secret(host: str, alice: Trader) -> None:
    auth = {"apiKey": alice.key_id, "secret": alice.secret, "passphrase": alice.passphrase}
    frames = []
    async with listening(host, "/ws/user") as listener:
        await listener.send({"type": "user", "auth": auth, "initial_dump": True})
        await listener.silence()
        await alice.placed(a_buy("alice"))
        frames.append(await listener.text())
    for changed in ({"secret": "x"}, {"passphrase": "x"}, {"apiKey": "x"}):
        async with listening(host, "/ws/user") as listener:
            await listener.send({"type": "user", "auth": auth | changed})
            frames.append(await listener.text())
    assert [json.loads(frame).get("error") for frame in frames[1:]] == [REFUSED] * 3
    assert alice.key_id in frames[0]
    assert not forms_in([frame.encode() for frame in frames], alice.secret, alice.passphrase)


async def test_a_login_without_the_database_is_refused_and_the_connection_closed(
    rig: TradingRig, host: str, alice: Trader
) -> None:
    auth = {"apiKey": alice.key_id, "secret": alice.secret, "passphrase": alice.passphrase}
    async with rig.context.database.writing() as tx:
        await tx.execute(sa.text("ALTER TABLE api_keys RENAME TO hidden"))
    async with listening(host, "/ws/user") as listener:
        await listener.send({"type": "user", "auth": auth})
        message = await listener.message()
        assert (message["code"], message["error"]) == ("store_unavailable", message["message"])
        assert await listener.close_code() == 1013
    async with rig.context.database.writing() as tx:
        await tx.execute(sa.text("ALTER TABLE hidden RENAME TO api_keys"))
    async with listening(host, "/ws/user") as listener:
        await listener.log_in(alice)


@pytest.mark.case("C-13")
@pytest.mark.spec(53)
async def test_a_revoked_keys_connection_is_closed_at_once(
    rig: TradingRig, host: str, alice: Trader, alices: Listener
) -> None:
    other = await rig.trader("alice", nonce=1)
    async with listening(host, "/ws/user") as listener:
        await listener.log_in(other)
        await alice.send("DELETE", "/auth/api-key")
        assert await alices.close_code() == 1008
        await other.placed(a_buy("alice"))
        assert (await listener.message())["type"] == "PLACEMENT"
    async with listening(host, "/ws/user") as again:
        await again.send({"type": "user", "auth": {"apiKey": alice.key_id, "secret": alice.secret}})
        assert (await again.message())["code"] == "revoked_key"


@pytest.mark.parametrize(
    ("messages", "published"),
    [
        ([{"markets": [MARKET]}], {"market"}),
        ([{"markets": [MARKET.upper().replace("0X", "0x")]}], {"market"}),
        ([{"markets": []}], {"market", "other"}),
        ([{"markets": [MARKET]}, {"operation": "subscribe", "markets": []}], {"market", "other"}),
        ([{"markets": []}, {"operation": "unsubscribe", "markets": [MARKET]}], {"other"}),
        (
            [
                {"markets": []},
                {"operation": "unsubscribe", "markets": [MARKET]},
                {"operation": "subscribe", "markets": [MARKET]},
            ],
            {"market", "other"},
        ),
        ([{"markets": [MARKET]}, {"operation": "unsubscribe", "markets": [MARKET]}], set()),
        ([{"markets": []}, {"operation": "unsubscribe", "markets": []}], set()),
        (
            [{"markets": [MARKET]}, {"operation": "subscribe", "markets": [a_word("other")]}],
            {"market", "other"},
        ),
    ],
)
async def test_markets_are_subscribed_to_and_unsubscribed_from(
    rig: TradingRig,
    host: str,
    alice: Trader,
    messages: list[dict[str, Any]],
    published: set[str],
) -> None:
    await rig.open("other", "alice")
    async with listening(host, "/ws/user") as listener:
        await listener.log_in(alice, **messages[0])
        for message in messages[1:]:
            await listener.send(message)
        await listener.silence()
        await alice.placed(a_buy("alice"))
        await alice.placed(a_buy("alice", market="other"))
        seen = {(await listener.message())["market"] for _ in published}
        await listener.silence()
    assert seen == {a_word(name) for name in published}


@pytest.mark.parametrize(
    "message",
    ["hello", {"type": "market"}, {"type": "user", "operation": "x"}, {"markets": "all"}],
)
async def test_a_message_that_is_not_understood_is_answered_so(
    alices: Listener, message: object
) -> None:
    await alices.send(message)
    await expect_refusal(alices)


async def test_the_markets_of_a_connection_are_bounded(alices: Listener) -> None:
    markets = [a_word(f"m{number}") for number in range(MARKETS_PER_CONNECTION_MAX)]
    await alices.send({"operation": "unsubscribe", "markets": markets})
    await alices.silence()
    await alices.send({"operation": "unsubscribe", "markets": [MARKET]})
    assert "501 markets" in await expect_refusal(alices, "too_many_subscriptions")
