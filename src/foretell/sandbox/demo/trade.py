"""Chapter 2: two traders trade with each other, one of them through a Safe."""

from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import msgspec

from foretell.domain.errors.command import ApiRefused, DemoMismatch
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import UNITS_PER_TOKEN, decimal_text
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.streams import Frame, MessageStream, subscribed
from foretell.sandbox.market_creation import SandboxMarket
from foretell.sandbox.session import approval_calls, approvals
from foretell.sdk.authentication import usual_l1_domain
from foretell.sdk.http import wait_for
from foretell.sdk.relayer import RelayerClient
from foretell.sdk.trading import TradingClient, Wallet

PERCENT: Final = 100
FUNDS_UNITS: Final = 500 * UNITS_PER_TOKEN
MINT_UNITS: Final = 100 * UNITS_PER_TOKEN
MINT_YES_CENTS: Final = 60
SALE_UNITS: Final = 40 * UNITS_PER_TOKEN
SALE_CENTS: Final = 65
SETTLED_S: Final = 90.0
TAPE: Final = "last_trade_price"
"""The type of the market stream's messages about trades."""


class Traders:
    """Alice trades with her own address, Bob with a Safe."""

    def __init__(self, alice: TradingClient, bob: TradingClient, bobs_safe: RelayerClient) -> None:
        self.alice = alice
        self.bob = bob
        self.bobs_safe = bobs_safe


async def gather_traders(session: DemoSession) -> Traders:
    """Create two accounts with API keys, collateral and approvals."""
    alice = await new_trader(session, Wallet(await session.new_account()))
    await session.fund(alice.wallet.maker, FUNDS_UNITS)
    await session.caller(alice.wallet.private_key).call_all(approval_calls(session.deployment))
    session.state(f"Alice has an API key, {decimal_text(FUNDS_UNITS)} collateral and approvals")
    bob, safe = await new_safe_owner(session)
    await session.fund(safe.safe, FUNDS_UNITS)
    with session.waiting("Bob's Safe approves, sent by the relayer"):
        await safe.execute(approvals(session.deployment))
    session.state(f"Bob trades with Safe {safe.safe}, deployed and driven by the relayer")
    return Traders(alice, bob, safe)


async def new_trader(session: DemoSession, wallet: Wallet) -> TradingClient:
    """Return the client of a wallet with a new API key."""
    ready, separators = session.ready, session.deployment.separators()
    l1_domain = usual_l1_domain(ready.chain_id, ready.l1_domain)
    client = TradingClient(
        session.trading, wallet, ready.chain_id, separators, session.now_s, l1_domain
    )
    await client.create_key()
    return client


async def new_safe_owner(session: DemoSession) -> tuple[TradingClient, RelayerClient]:
    """Return the client of a Safe that the relayer deployed, and its owner at the relayer."""
    key = await session.new_account()
    signer = await new_trader(session, Wallet(key))
    relayer = RelayerClient(
        session.relayer,
        signer,
        session.deployment,
        session.deployment.safe_of(signer.wallet.address),
    )
    with session.waiting("the relayer deploys a Safe"):
        safe = await relayer.create_safe()
    return await new_trader(session, Wallet(key, safe)), relayer


async def trade(session: DemoSession, market: SandboxMarket, traders: Traders) -> None:
    """Play a mint match and a complementary match, and wait until both are settled."""
    await wait_for_funds(session, traders)
    async with (
        _subscribed_to_tape(session, market) as tape,
        _subscribed_to_account(session, traders.alice) as alices,
    ):
        await _mint(session, market, traders, tape)
        await _sell(session, market, traders, tape)
        await settle_trades(session, market, traders, alices)


def _subscribed_to_tape(
    session: DemoSession, market: SandboxMarket
) -> AbstractAsyncContextManager[MessageStream]:
    """Subscribe to a market's trades; one that was missed is found as a token's last trade."""
    tokens = [market.token_yes, market.token_no]
    body = msgspec.json.encode([{"token_id": token} for token in tokens])

    async def fetch_last_trades() -> list[Frame]:
        trades = await session.trading.send("POST", "/last-trades-prices", body)
        return [
            {"event_type": TAPE, "asset_id": trade["token_id"], "price": trade["price"]}
            for trade in trades
        ]

    subscription = {"type": "market", "assets_ids": tokens}
    return subscribed(f"{session.ready.ws}/market", subscription, fetch_last_trades)


def _subscribed_to_account(
    session: DemoSession, trader: TradingClient
) -> AbstractAsyncContextManager[MessageStream]:
    """Subscribe to a trader's orders and trades; missed trades are found in the list."""

    async def fetch_trades() -> list[Frame]:
        return list((await trader.get("/data/trades"))["data"])

    subscription = _user_subscription(trader)
    return subscribed(f"{session.ready.ws}/user", subscription, fetch_trades)


def _user_subscription(trader: TradingClient) -> dict[str, Any]:
    credentials = trader.credentials
    assert credentials is not None
    auth = {
        "apiKey": credentials.key_id,
        "secret": credentials.secret,
        "passphrase": credentials.passphrase,
    }
    return {"type": "user", "auth": auth, "markets": []}


async def wait_for_funds(session: DemoSession, traders: Traders) -> None:
    """Wait until trading knows the collateral of both."""
    for trader in (traders.alice, traders.bob):
        await wait_for_collateral(session, trader)


async def wait_for_collateral(session: DemoSession, trader: TradingClient) -> None:
    """Wait until trading knows a trader's collateral, and that both exchanges may move it."""
    kind = int(trader.wallet.signature_type)

    async def fetch_funded() -> bool | None:
        found = await trader.get("/balance-allowance", asset_type="COLLATERAL", signature_type=kind)
        allowed = min(map(int, found["allowances"].values()))
        return True if int(found["balance"]) >= FUNDS_UNITS and allowed > 0 else None

    with session.waiting("the exchange sees the funds"):
        await wait_for("funds at the exchange", fetch_funded)


async def wait_for_trades(
    session: DemoSession, trader: TradingClient, market: SandboxMarket, count: int
) -> list[Any]:
    """Return a market's trades, once there are this many and all are confirmed."""

    async def fetch_confirmed() -> list[Any] | None:
        page = await trader.get("/data/trades", market=market.condition_id)
        states = [trade["status"] for trade in page["data"]]
        if "FAILED" in states:
            raise DemoMismatch("a trade", "FAILED", "CONFIRMED")
        return list(page["data"]) if states == ["CONFIRMED"] * count else None

    with session.waiting("the trades settle on the chain"):
        return await wait_for(f"{count} confirmed trades", fetch_confirmed, SETTLED_S)


async def _mint(
    session: DemoSession, market: SandboxMarket, traders: Traders, tape: MessageStream
) -> None:
    """Alice bids for Yes, Bob bids for No, and a complete set is minted between them."""
    cost = MINT_UNITS * MINT_YES_CENTS // PERCENT
    resting = await place(session, traders.alice, market.token_yes, Side.BUY, MINT_UNITS, cost)
    session.state(f"Alice bids 0.{MINT_YES_CENTS} for 100 Yes: {resting['status']}")
    book = await session.trading.get("/book", token_id=market.token_yes)
    price = await session.trading.get("/price", token_id=market.token_yes, side="SELL")
    agree("the book's best bid", book["bids"][-1]["price"], f"0.{MINT_YES_CENTS // 10}")
    agree("what a seller gets", price["price"], f"0.{MINT_YES_CENTS // 10}")
    matched = await place(
        session, traders.bob, market.token_no, Side.BUY, MINT_UNITS, MINT_UNITS - cost
    )
    agree("Bob's order", matched["status"], "matched")
    await await_on_tape(tape, market.token_no, f"0.{(PERCENT - MINT_YES_CENTS) // 10}")
    session.state(f"Bob bids 0.{PERCENT - MINT_YES_CENTS} for 100 No: matched, a mint of 100 sets")


async def _sell(
    session: DemoSession, market: SandboxMarket, traders: Traders, tape: MessageStream
) -> None:
    """Alice sells Bob some of the tokens that she has just bought, settled or not."""
    cost = SALE_UNITS * SALE_CENTS // PERCENT
    resting = await place(session, traders.alice, market.token_yes, Side.SELL, SALE_UNITS, cost)
    agree("Alice's offer", resting["status"], "live")
    bid = await place(
        session,
        traders.bob,
        market.token_yes,
        Side.BUY,
        SALE_UNITS // 2,
        SALE_UNITS * 25 // PERCENT,
    )
    midpoint = await session.trading.get("/midpoint", token_id=market.token_yes)
    agree("the midpoint", midpoint["mid"], "0.575")
    await traders.bob.send("DELETE", "/order", {"orderID": bid["orderID"]})
    session.state("Alice offers 40 Yes at 0.65, Bob bids 0.50 and cancels: the midpoint was 0.575")
    matched = await place(session, traders.bob, market.token_yes, Side.BUY, SALE_UNITS, cost)
    agree("Bob's order", matched["status"], "matched")
    await await_on_tape(tape, market.token_yes, f"0.{SALE_CENTS}")
    session.state("Bob takes it: 40 Yes change hands at 0.65")


async def settle_trades(
    session: DemoSession, market: SandboxMarket, traders: Traders, alices: MessageStream
) -> None:
    """Wait until both trades are confirmed, on the stream and in the list."""
    trades = await wait_for_trades(session, traders.bob, market, 2)
    with session.waiting("Alice's stream reports it"):
        for trade in trades:
            await alices.wait_for(
                "the confirmation on Alice's stream",
                lambda frame, trade=trade: (  # type: ignore[misc]
                    frame.get("id") == trade["id"] and frame.get("status") == "CONFIRMED"
                ),
                SETTLED_S,
            )
    for trade in trades:
        session.state(f"trade {trade['id']} is CONFIRMED in {trade['transaction_hash'][:18]}…")


async def place(
    session: DemoSession, trader: TradingClient, token: str, side: Side, size: int, cost: int
) -> Any:
    """Place an order for this many token units at this much collateral, once its market is open."""
    order = trader.sign_order(token, side, size, cost, salt=session.new_salt())

    async def try_to_place() -> Any:
        try:
            return await trader.place(order)
        except ApiRefused as refusal:
            if "No orderbook exists" not in refusal.message:
                raise
            return None

    with session.waiting("the market opens"):
        answer = await wait_for("an order book", try_to_place)
    agree("the order", answer["success"], wanted=True)
    return answer


async def await_on_tape(
    tape: MessageStream, token_id: str, price: str, deadline_s: float = SETTLED_S
) -> None:
    """Wait until the market stream has published a trade in the taker's token."""
    wanted = {"event_type": TAPE, "asset_id": token_id, "price": price}
    await tape.wait_for(
        "a trade on the tape", lambda frame: wanted.items() <= frame.items(), deadline_s
    )


def agree(what: str, seen: object, wanted: object) -> None:
    """Stop the demo when a value is not the one expected."""
    if seen != wanted:
        raise DemoMismatch(what, seen, wanted)
