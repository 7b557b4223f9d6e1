"""What the story says when what it sees is not what it tells; the whole of it is in tests/e2e."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.rigs.sandbox import Sandbox
from tests.rigs.scripted_api import Desk, a_session
from tests.rigs.values import NOW_S, a_key, a_word, an_address

from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.errors.command import ApiRefused, DemoMismatch, NotInTime
from foretell.domain.exchange.order import Side
from foretell.domain.values.credentials import Credentials
from foretell.sandbox.demo import output, resolution, trade
from foretell.sandbox.demo.create_market import DemoMarket, demo_draft
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.streams import MessageStream
from foretell.sandbox.demo.trade import Traders
from foretell.sdk import http
from foretell.sdk.relayer import RelayerClient
from foretell.sdk.trading import TradingClient, Wallet

pytestmark = pytest.mark.anyio

MARKET = DemoMarket(a_word("condition"), "11", "12")
ALICE, BOB = an_address("alice"), an_address("bob")
NO_BOOK = {"error": "No orderbook exists for the requested token id"}
TRADE = {"side": "BUY", "size": 1, "outcome": "Yes", "price": 0.5}


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
async def session(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DemoSession]:
    monkeypatch.setattr(http, "POLL_S", 0.001)
    monkeypatch.setattr(trade, "SETTLED_S", 0.05)
    async with a_session(desk) as session:
        yield session


def a_trader(session: DemoSession, name: str) -> TradingClient:
    separators = session.deployment.separators()
    trader = TradingClient(
        session.trading, Wallet(a_key(name)), SANDBOX_CHAIN_ID, separators, lambda: NOW_S
    )
    trader.credentials = Credentials("key", "c2VjcmV0", "pass")
    return trader


def a_relayer(session: DemoSession) -> RelayerClient:
    return RelayerClient(session.relayer, a_trader(session, "bob"), session.deployment)


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_another_number_of_trades_is_not_the_story(
    desk: Desk, session: DemoSession, count: int
) -> None:
    position = {"size": 1, "outcome": "Yes"}
    desk.say("GET /positions", [], [position], [position, position])
    desk.say("GET /value", [{"value": 1}])
    desk.say("GET /trades", [TRADE] * count)
    with pytest.raises(
        DemoMismatch, match=f"^the number of trades is {count}, and the story says 2$"
    ):
        await output.show(session, MARKET, ALICE, BOB)


async def test_an_order_waits_for_its_market_to_open(desk: Desk, session: DemoSession) -> None:
    desk.prepared["POST /order"] = [(404, NO_BOOK), (404, NO_BOOK), (200, {"success": True})]
    trader = a_trader(session, "alice")
    assert await trade.place(session, trader, "11", Side.BUY, 5, 3) == {"success": True}
    bodies = [each.json()["order"] for each in desk.asked("POST /order")]
    assert len(bodies) == 3
    assert len({json.dumps(body) for body in bodies}) == 1


async def test_an_order_that_is_refused_is_not_placed_again(
    desk: Desk, session: DemoSession
) -> None:
    desk.say("POST /order", {"error": "not enough balance / allowance"}, status=400)
    with pytest.raises(ApiRefused, match="not enough balance"):
        await trade.place(session, a_trader(session, "alice"), "11", Side.BUY, 5, 3)
    assert len(desk.asked("POST /order")) == 1


async def test_an_order_that_was_not_taken_is_not_the_story(
    desk: Desk, session: DemoSession
) -> None:
    desk.say("POST /order", {"success": False})
    with pytest.raises(DemoMismatch, match="the order is False, and the story says True"):
        await trade.place(session, a_trader(session, "alice"), "11", Side.BUY, 5, 3)


async def test_a_trade_that_failed_is_not_waited_for(desk: Desk, session: DemoSession) -> None:
    states = [{"status": "CONFIRMED"}, {"status": "FAILED"}]
    desk.say("GET /data/trades", {"data": states})
    traders = Traders(a_trader(session, "alice"), a_trader(session, "bob"), a_relayer(session))
    with pytest.raises(DemoMismatch, match="a trade is 'FAILED'"):
        await trade._settle(session, MARKET, traders, MessageStream())


@pytest.mark.usefixtures("session")
async def test_a_trade_that_no_stream_tells_of_is_missed() -> None:
    tape = MessageStream()
    tape.take({"event_type": "last_trade_price", "asset_id": "11", "price": "0.6"})
    await trade._see_on_tape(tape, "11", "0.6")
    with pytest.raises(NotInTime, match="a trade on the tape"):
        await trade._see_on_tape(tape, "12", "0.4")


async def test_an_early_redemption_that_is_accepted_is_not_the_story(
    desk: Desk, session: DemoSession
) -> None:
    desk.say("GET /nonce", {"nonce": "0"})
    desk.say("POST /operations/redeem-position", {"txHash": a_word("tx")})
    with pytest.raises(DemoMismatch, match="an early redemption is 'accepted'"):
        await resolution.refuse_early_redemption(session, MARKET, a_relayer(session))


async def test_no_two_demos_ask_the_same_question(session: DemoSession) -> None:
    one, other = demo_draft(session, 1), demo_draft(session, 2)
    assert {one.slug, one.question, one.title}.isdisjoint({other.slug, other.question, other.title})
    assert session.new_salt() != session.new_salt()


@pytest.fixture
async def chain_session(desk: Desk, sandbox: Sandbox) -> AsyncIterator[DemoSession]:
    """A stage on a real chain whose APIs say what they are told."""
    async with a_session(desk, sandbox.rpc) as session:
        session.deployment = sandbox.deployment
        yield session


async def test_a_question_that_the_chain_does_not_know_is_not_the_story(
    desk: Desk, chain_session: DemoSession
) -> None:
    listed: list[Any] = [{"questionID": a_word("unknown")}]
    desk.say("GET /markets", listed)
    with pytest.raises(DemoMismatch, match="the question is 'unknown'"):
        await resolution.resolve(chain_session, MARKET)


async def test_books_that_do_not_close_are_not_the_story(chain_session: DemoSession) -> None:
    """Somebody paid in what nobody has."""
    chain_session.paid_in_units = {ALICE: 5}
    with pytest.raises(DemoMismatch, match=r"^collateral in is 5, and the story says 0$"):
        await resolution.balance(chain_session, MARKET, {"Alice": ALICE, "Bob's Safe": BOB})


async def test_a_redemption_that_pays_another_sum_is_not_the_story(
    desk: Desk, chain_session: DemoSession, fresh_sandbox: Sandbox
) -> None:
    """The relayer says that it redeemed winning tokens, and no collateral arrives."""
    desk.say("GET /nonce", {"nonce": "0"})
    desk.say("POST /operations/redeem-position", {"txHash": a_word("tx"), "confirmations": 1})
    asked, trader = await fresh_sandbox.ask("Does a relayer lie?"), fresh_sandbox.trader()
    await fresh_sandbox.split(trader, asked, 7)
    market = DemoMarket(asked.condition_id, str(asked.tokens.yes), str(asked.tokens.no))
    holder = a_relayer(chain_session)
    holder.safe = trader.address
    with pytest.raises(DemoMismatch, match="what the redemption paid is 0, and the story says 7"):
        await resolution.redeem(chain_session, market, holder)
