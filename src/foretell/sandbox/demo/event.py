"""The second story: an event of three outcomes, of which exactly one is true."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from foretell.chain.reader import Reader
from foretell.domain.contracts import neg_risk
from foretell.domain.contracts.calldata import PRICE_YES, YES_OR_NO_QUERY
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.command import DemoMismatch
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import UNITS_PER_TOKEN, decimal_text
from foretell.domain.values.hexadecimal import Address, Bytes32, parse_bytes32, word_bytes
from foretell.sandbox.demo.create_market import event_draft
from foretell.sandbox.demo.resolution import wait_for_interest, wait_until_closed
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.trade import (
    Traders,
    agree,
    gather_traders,
    place,
    wait_for_funds,
    wait_for_trades,
)
from foretell.sandbox.market_creation import MarketCreator, SandboxMarket
from foretell.sdk.http import wait_for
from foretell.sdk.payloads import event_payload
from foretell.sdk.trading import TradingClient

OUTCOMES: Final = ("Anna", "Ben", "Cleo")
SET_UNITS: Final = 100 * UNITS_PER_TOKEN
SALE_UNITS: Final = 40 * UNITS_PER_TOKEN
PERCENT: Final = 100
YES_CENTS: Final = (50, 30)
"""What Alice bids for Yes of the first two outcomes; Bob bids the rest for No."""
SALE_CENTS: Final = 20
FIRST_TWO: Final = 0b011


class EventSession(NamedTuple):
    """The traders of this story, with clients that sign for the exchange of events."""

    session: DemoSession
    traders: Traders
    alice: TradingClient
    bob: TradingClient
    markets: Sequence[SandboxMarket]

    @property
    def adapter(self) -> Address:
        """The contract that splits, merges, converts and redeems positions of events."""
        return self.session.deployment.address(ContractName.NEG_RISK_ADAPTER)

    @property
    def reader(self) -> Reader:
        """The chain's views."""
        return Reader(self.session.rpc, self.session.deployment)


async def play_event(session: DemoSession) -> None:
    """Play an event from creation to redemption; raise at the first amount that is wrong."""
    session.chapter("7. An event of three outcomes is created")
    config = await session.worker.get("/market-config")
    fee = config["directNegRiskQuestionFeeUsdc"]
    session.state(f"the worker asks {fee} collateral for each question of an event")
    draft = event_draft(session, session.new_salt())
    creator = MarketCreator(session, session.account(AccountRole.CREATOR), session)
    markets = await creator.create(event_payload(draft, OUTCOMES))
    traders = await gather_traders(session)
    await wait_for_funds(session, traders)
    separators = session.deployment.neg_risk_separators()
    event = EventSession(
        session,
        traders,
        traders.alice.for_exchange(separators),
        traders.bob.for_exchange(separators),
        markets,
    )
    session.chapter("8. Its markets trade, and No's are converted")
    await _mint(event)
    await _convert(event)
    await _sell(event)
    session.chapter("9. Cleo wins")
    await _resolve(event)
    await _redeem(event)
    session.chapter("10. The books of the event are closed")
    await _balance(event)


async def _mint(event: EventSession) -> None:
    """Alice bids for two Yes and Bob for their No: two complete sets are minted between them."""
    session = event.session
    for name, market, cents in zip(OUTCOMES, event.markets, YES_CENTS, strict=False):
        cost = SET_UNITS * cents // PERCENT
        await place(session, event.alice, market.token_yes, Side.BUY, SET_UNITS, cost)
        answer = await session.trading.get("/neg-risk", token_id=market.token_yes)
        agree("neg_risk of the market", answer["neg_risk"], wanted=True)
        matched = await place(
            session, event.bob, market.token_no, Side.BUY, SET_UNITS, SET_UNITS - cost
        )
        agree("Bob's order", matched["status"], "matched")
        session.state(f"Alice buys 100 Yes of {name} at 0.{cents}, Bob 100 No: a mint of 100 sets")
    for market in event.markets[:2]:
        await wait_for_trades(session, event.bob, market, 1)


async def _convert(event: EventSession) -> None:
    """Convert Bob's two No's into one collateral each and Yes of the third outcome."""
    session, safe = event.session, event.traders.bobs_safe
    before = await event.reader.collateral_units(safe.safe)
    calldata = neg_risk.CONVERT_POSITIONS.encode(
        word_bytes(await _event_id(event)), FIRST_TWO, SET_UNITS
    )
    with session.waiting("Bob's Safe converts, sent by the relayer"):
        await safe.execute([InnerCall(event.adapter, calldata)])
    gained = await event.reader.collateral_units(safe.safe) - before
    agree("what the conversion paid", gained, SET_UNITS)
    third = event.markets[2].token_yes
    (yes_units,) = await event.reader.token_units([(safe.safe, AssetId(third))])
    agree("the Yes that it gave", yes_units, SET_UNITS)
    session.state("Bob converts 100 No of Anna and of Ben: 100 collateral, and 100 Yes of Cleo")

    async def fetch_conversion() -> bool | None:
        rows = await session.data.get("/activity", user=safe.safe, type="CONVERSION")
        return True if rows else None

    with session.waiting("the indexer reads it"):
        await wait_for("the conversion in GET /activity", fetch_conversion)
    session.state("GET /activity: Bob's Safe has a CONVERSION")


async def _event_id(event: EventSession) -> Bytes32:
    listed = await event.session.discovery.get(
        "/markets", condition_ids=event.markets[0].condition_id
    )
    return parse_bytes32(listed[0]["negRiskMarketID"])


async def _sell(event: EventSession) -> None:
    """Bob sells Alice some of the Yes that he got by converting."""
    session, market = event.session, event.markets[2]
    kind = int(event.bob.wallet.signature_type)

    async def fetch_credited() -> bool | None:
        found = await event.bob.get(
            "/balance-allowance",
            asset_type="CONDITIONAL",
            token_id=market.token_yes,
            signature_type=kind,
        )
        return True if int(found["balance"]) >= SALE_UNITS else None

    with session.waiting("the exchange sees what the conversion gave"):
        await wait_for("Bob's Yes at the exchange", fetch_credited)
    cost = SALE_UNITS * SALE_CENTS // PERCENT
    await place(session, event.alice, market.token_yes, Side.BUY, SALE_UNITS, cost)
    matched = await place(session, event.bob, market.token_yes, Side.SELL, SALE_UNITS, cost)
    agree("Bob's order", matched["status"], "matched")
    await wait_for_trades(session, event.bob, market, 1)
    session.state(f"Bob sells Alice 40 Yes of Cleo at 0.{SALE_CENTS}: CONFIRMED")


async def _resolve(event: EventSession) -> None:
    """Answer Yes for the third outcome as the proposer; Alice, as any account may, closes the others as No."""
    session, address = event.session, event.session.deployment.address
    adapter = address(ContractName.NEG_RISK_DIRECT_ADAPTER)
    operator = address(ContractName.NEG_RISK_OPERATOR)
    listed = [
        (await session.discovery.get("/markets", condition_ids=market.condition_id))[0]
        for market in event.markets
    ]
    asked_id = parse_bytes32(listed[2]["negRiskRequestID"])
    question = await event.reader.question(asked_id, adapter)
    if question is None:
        raise DemoMismatch("the question", "unknown", "on the chain")
    answer = neg_risk.PROPOSE_AND_RESOLVE_NEG_RISK.encode(
        adapter,
        operator,
        word_bytes(asked_id),
        word_bytes(parse_bytes32(listed[2]["questionID"])),
        YES_OR_NO_QUERY,
        question.asked_at_s,
        question.ancillary_data,
        PRICE_YES,
    )
    oracle = address(ContractName.DIRECT_RESOLUTION_ORACLE)
    with session.waiting("the proposer answers Yes for Cleo"):
        await session.caller(session.account(AccountRole.PROPOSER)).call(oracle, answer)
    session.state("the proposer answered Yes for Cleo: final at once")
    closing = [
        ContractCall(
            operator,
            neg_risk.RESOLVE_QUESTION.encode(word_bytes(parse_bytes32(each["questionID"]))),
        )
        for each in listed[:2]
    ]
    with session.waiting("Alice closes the others"):
        await session.caller(event.alice.wallet.private_key).call_all(closing)
    for market in event.markets:
        await wait_until_closed(session, market)
    session.state("Alice, as any account may, closed Anna and Ben as No")


async def _redeem(event: EventSession) -> None:
    """Redeem the winning Yes at the adapter: Alice by herself, Bob's Safe by the relayer."""
    session, market = event.session, event.markets[2]
    safe, alice = event.traders.bobs_safe, event.alice.wallet
    wallets = (alice.maker, safe.safe)
    units = await event.reader.token_units([(each, market.token_yes) for each in wallets])
    calls = [
        neg_risk.REDEEM_SETS.encode(word_bytes(market.condition_id), [each, 0]) for each in units
    ]
    with session.waiting("Alice and Bob redeem"):
        await session.caller(alice.private_key).call(event.adapter, calls[0])
        await safe.execute([InnerCall(event.adapter, calls[1])])
    agree("what both redeemed", tuple(units), (SALE_UNITS, SET_UNITS - SALE_UNITS))
    session.state("Alice redeems 40 Yes of Cleo for 40 collateral, Bob's Safe 60 for 60")


async def _balance(event: EventSession) -> None:
    """Check that both have what both paid in, and that nothing is locked in any of the markets."""
    session = event.session
    wallets = (event.alice.wallet.maker, event.bob.wallet.maker)
    total_in = sum(session.paid_in_units[wallet] for wallet in wallets)
    out = [await event.reader.collateral_units(wallet) for wallet in wallets]
    agree("collateral out", sum(out), total_in)
    wrapped = session.deployment.address(ContractName.WRAPPED_COLLATERAL)
    for market in event.markets:
        await wait_for_interest(session, market, 0)
    session.state(
        f"Alice has {decimal_text(out[0])} and Bob's Safe {decimal_text(out[1])}:"
        f" {decimal_text(total_in)} in = {decimal_text(sum(out))} out, GET /oi says 0 of each outcome"
    )
    left = await event.reader.collateral_units(wrapped)
    session.state(f"{decimal_text(left)} collateral is left under the positions of all events")
