"""Refusals of the demo when a value is not the expected one; tests/e2e plays all of it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from tests.rigs.sandbox import Sandbox
from tests.rigs.scripted_api import ScriptedApi, a_session
from tests.rigs.values import NOW_S, a_key, a_word, an_address

from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.errors.command import ApiRefused, DemoMismatch, NotInTime, QuestionUnknown
from foretell.domain.exchange.order import Side
from foretell.domain.values.credentials import Credentials
from foretell.sandbox.demo import output, resolution, trade
from foretell.sandbox.demo.create_market import demo_draft
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.streams import MessageStream
from foretell.sandbox.demo.trade import Traders
from foretell.sandbox.market_creation import SandboxMarket
from foretell.sdk.contracts import ChainTerms, StackTerms
from foretell.sdk.oracles.resolution import DIRECT
from foretell.sdk.relayer import RelayerClient
from foretell.sdk.trading import TradingClient, Wallet

pytestmark = pytest.mark.anyio

MARKET = SandboxMarket(a_word("condition"), "11", "12")
ALICE, BOB = an_address("alice"), an_address("bob")
NO_BOOK = {"error": "No orderbook exists for the requested token id"}
TRADE = {"side": "BUY", "size": 1, "outcome": "Yes", "price": 0.5}


@pytest.fixture
def api() -> ScriptedApi:
    return ScriptedApi()


@pytest.fixture
async def session(api: ScriptedApi) -> AsyncIterator[DemoSession]:
    async with a_session(api) as session:
        yield session


def a_trader(session: DemoSession, name: str) -> TradingClient:
    separators = session.deployment.separators()
    trader = TradingClient(
        session.trading, Wallet(a_key(name)), SANDBOX_CHAIN_ID, separators, lambda: NOW_S
    )
    trader.credentials = Credentials("key", "c2VjcmV0", "pass")
    return trader


def a_relayer(session: DemoSession) -> RelayerClient:
    bob = a_trader(session, "bob")
    safe = session.deployment.safe_of(bob.wallet.address)
    return RelayerClient(session.relayer, bob, session.deployment, safe)


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_another_number_of_trades_is_refused(
    api: ScriptedApi, session: DemoSession, count: int
) -> None:
    position = {"size": 1, "outcome": "Yes"}
    api.prepare("GET /positions", [], [position], [position, position])
    api.prepare("GET /value", [{"value": 1}])
    api.prepare("GET /trades", [TRADE] * count)
    with pytest.raises(
        DemoMismatch, match=f"^the number of trades is {count}, and the demo expects 2$"
    ):
        await output.show(session, MARKET, ALICE, BOB)


async def test_an_order_waits_for_its_market_to_open(
    api: ScriptedApi, session: DemoSession
) -> None:
    api.prepared["POST /order"] = [(404, NO_BOOK), (404, NO_BOOK), (200, {"success": True})]
    trader = a_trader(session, "alice")
    assert await trade.place(session, trader, "11", Side.BUY, 5, 3) == {"success": True}
    bodies = [each.json()["order"] for each in api.requests("POST /order")]
    assert len(bodies) == 3
    assert len({json.dumps(body) for body in bodies}) == 1


async def test_an_order_that_is_refused_is_not_placed_again(
    api: ScriptedApi, session: DemoSession
) -> None:
    api.prepare("POST /order", {"error": "not enough balance / allowance"}, status=400)
    with pytest.raises(ApiRefused, match="not enough balance"):
        await trade.place(session, a_trader(session, "alice"), "11", Side.BUY, 5, 3)
    assert len(api.requests("POST /order")) == 1


async def test_an_order_without_success_is_refused(api: ScriptedApi, session: DemoSession) -> None:
    api.prepare("POST /order", {"success": False})
    with pytest.raises(DemoMismatch, match="the order is False, and the demo expects True"):
        await trade.place(session, a_trader(session, "alice"), "11", Side.BUY, 5, 3)


async def test_a_trade_that_failed_ends_the_wait(api: ScriptedApi, session: DemoSession) -> None:
    states = [{"status": "CONFIRMED"}, {"status": "FAILED"}]
    api.prepare("GET /data/trades", {"data": states})
    traders = Traders(a_trader(session, "alice"), a_trader(session, "bob"), a_relayer(session))
    with pytest.raises(DemoMismatch, match="a trade is 'FAILED'"):
        await trade.settle_trades(session, MARKET, traders, MessageStream())


async def test_a_trade_that_is_not_published_is_missed() -> None:
    tape = MessageStream()
    tape.take({"event_type": "last_trade_price", "asset_id": "11", "price": "0.6"})
    await trade.await_on_tape(tape, "11", "0.6")
    with pytest.raises(NotInTime, match="a trade on the tape"):
        await trade.await_on_tape(tape, "12", "0.4", deadline_s=0.05)


async def test_an_early_redemption_that_is_accepted_is_refused(
    api: ScriptedApi, session: DemoSession
) -> None:
    api.prepare("GET /nonce", {"nonce": "0"})
    api.prepare("POST /operations/redeem-position", {"txHash": a_word("tx")})
    with pytest.raises(DemoMismatch, match="an early redemption is 'accepted'"):
        await resolution.refuse_early_redemption(session, MARKET, a_relayer(session))


async def test_every_demo_asks_another_question(session: DemoSession) -> None:
    one, other = demo_draft(session, 1), demo_draft(session, 2)
    assert {one.slug, one.question, one.title}.isdisjoint({other.slug, other.question, other.title})
    assert session.new_salt() != session.new_salt()


@pytest.fixture
async def chain_session(api: ScriptedApi, sandbox: Sandbox) -> AsyncIterator[DemoSession]:
    """A session on a real chain with scripted APIs."""
    async with a_session(api, sandbox.rpc_url) as session:
        session.deployment = sandbox.deployment
        yield session


async def test_a_question_that_the_chain_does_not_know_is_refused(
    api: ScriptedApi, chain_session: DemoSession
) -> None:
    row = {"questionID": a_word("unknown"), "conditionId": MARKET.condition_id}
    listed: list[Any] = [row]
    api.prepare("GET /markets", listed)
    api.prepare("GET /market-config", {"chains": [msgspec.to_builtins(chain_terms(chain_session))]})
    with pytest.raises(QuestionUnknown, match=MARKET.condition_id):
        await resolution.resolve(chain_session, MARKET)


def chain_terms(session: DemoSession) -> ChainTerms:
    """Return the configuration of a deployment as the creation API names it."""
    known = session.deployment
    stack = StackTerms(
        oracle=known.address(ContractName.DIRECT_RESOLUTION_ORACLE),
        adapter=known.address(ContractName.DIRECT_RESOLUTION_ADAPTER),
        neg_risk_adapter=known.address(ContractName.NEG_RISK_DIRECT_ADAPTER),
        neg_risk_operator=known.address(ContractName.NEG_RISK_OPERATOR),
    )
    return ChainTerms(
        chain_id=known.chain_id,
        usdc_token=known.collateral,
        ctf_exchange=known.exchange,
        neg_risk_ctf_exchange=known.neg_risk_exchange,
        conditional_tokens=known.conditional_tokens,
        proposer_whitelist_registry=known.address(ContractName.PROPOSER_WHITELIST_REGISTRY),
        position_adapter=known.address(ContractName.NEG_RISK_ADAPTER),
        safe_factory=known.safe_factory,
        safe_factory_name=known.safe_factory_name,
        multi_send=known.multi_send,
        resolution_stacks={DIRECT: stack},
    )


async def test_a_wrong_balance_is_refused(chain_session: DemoSession) -> None:
    """More was paid in than the wallets have."""
    chain_session.paid_in_units = {ALICE: 5}
    with pytest.raises(DemoMismatch, match=r"^collateral in is 5, and the demo expects 0$"):
        await resolution.balance(chain_session, MARKET, {"Alice": ALICE, "Bob's Safe": BOB})


async def test_a_redemption_that_pays_another_amount_is_refused(
    api: ScriptedApi, chain_session: DemoSession, fresh_sandbox: Sandbox
) -> None:
    """The relayer says that it redeemed winning tokens, and no collateral arrives."""
    api.prepare("GET /nonce", {"nonce": "0"})
    api.prepare("POST /operations/redeem-position", {"txHash": a_word("tx"), "confirmations": 1})
    asked, trader = await fresh_sandbox.ask("Does a relayer lie?"), fresh_sandbox.trader()
    await fresh_sandbox.split(trader, asked, 7)
    market = SandboxMarket(asked.condition_id, str(asked.tokens.yes), str(asked.tokens.no))
    holder = a_relayer(chain_session)
    holder.safe = trader.address
    with pytest.raises(DemoMismatch, match="what the redemption paid is 0, and the demo expects 7"):
        await resolution.redeem(chain_session, market, holder)
