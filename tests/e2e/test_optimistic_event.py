"""An event of the optimistic stack over HTTP, on a real chain: created, traded, answered, disputed, redeemed."""

import dataclasses
from typing import Any, Final

import pytest
from tests.rigs.installation import Running

from foretell.chain.reader import Reader
from foretell.domain.contracts import neg_risk
from foretell.domain.contracts.calldata import PRICE_NO, PRICE_YES, Approve
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.oracle import RESOLVE, PriceRequest
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.creation.payload import ResolutionType
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Bytes32, parse_bytes32, word_bytes
from foretell.sandbox.demo.create_market import event_draft
from foretell.sandbox.demo.resolution import close_books, wait_until_closed
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.trade import (
    FUNDS_UNITS,
    new_trader,
    place,
    wait_for_collateral,
    wait_for_trades,
)
from foretell.sandbox.market_creation import MarketCreator, SandboxMarket
from foretell.sandbox.session import approval_calls
from foretell.sdk.payloads import event_payload
from foretell.sdk.trading import TradingClient, Wallet

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e")]

OUTCOMES: Final = ("Anna", "Ben", "Cleo")
SET_UNITS: Final = 100 * UNITS_PER_TOKEN
YES_UNITS: Final = 40 * UNITS_PER_TOKEN
BONDS: Final = 5


async def create(session: DemoSession) -> list[SandboxMarket]:
    draft = event_draft(session, session.new_salt())
    draft = dataclasses.replace(draft, resolution_type=ResolutionType.OPTIMISTIC)
    creator = MarketCreator(session, session.account(AccountRole.CREATOR), session)
    return list(await creator.create(event_payload(draft, OUTCOMES)))


async def trader(session: DemoSession) -> TradingClient:
    """Return an account with collateral, that signs for the exchange of events."""
    client = await new_trader(session, Wallet(await session.new_account()))
    await session.fund(client.wallet.maker, FUNDS_UNITS)
    await session.caller(client.wallet.private_key).call_all(approval_calls(session.deployment))
    await wait_for_collateral(session, client)
    return client.for_exchange(session.deployment.neg_risk_separators())


async def answerer(session: DemoSession) -> bytes:
    """Return the key of an account that can put bonds at stake."""
    config = await session.worker.get("/market-config")
    terms = config["chains"][0]["resolutionStacks"][ResolutionType.OPTIMISTIC]
    bonds = BONDS * int(terms["proposalBondUsdc"]) * UNITS_PER_TOKEN
    key, oracle = (
        await session.new_account(),
        session.deployment.address(ContractName.OPTIMISTIC_ORACLE),
    )
    await session.fund(address_of_key(key), bonds)
    await session.caller(key).call(session.deployment.collateral, Approve(oracle, bonds).encode())
    return key


async def listed(session: DemoSession, market: SandboxMarket) -> Any:
    (found,) = await session.discovery.get("/markets", condition_ids=market.condition_id)
    return found


async def request_of(session: DemoSession, asked_id: Bytes32) -> PriceRequest:
    adapter = session.deployment.address(ContractName.NEG_RISK_OPTIMISTIC_ADAPTER)
    question = await Reader(session.rpc, session.deployment).question(asked_id, adapter)
    assert question is not None
    return PriceRequest(adapter, question.asked_at_s, question.ancillary_data)


async def answer(session: DemoSession, rows: list[Any], honest: bytes, liar: bytes) -> None:
    """Answer all questions; the first answer to the first is wrong, and disputed."""
    oracle = session.deployment.address(ContractName.OPTIMISTIC_ORACLE)
    adapter = session.deployment.address(ContractName.NEG_RISK_OPTIMISTIC_ADAPTER)
    operator = session.deployment.address(ContractName.NEG_RISK_OPTIMISTIC_OPERATOR)
    asked_ids = [parse_bytes32(row["negRiskRequestID"]) for row in rows]
    first = await request_of(session, asked_ids[0])
    await session.caller(liar).call(oracle, first.propose(PRICE_NO))
    await session.caller(honest).call(oracle, first.dispute())
    again = await request_of(session, asked_ids[0])
    assert again != first
    await session.caller(honest).call(oracle, again.propose(PRICE_YES))
    for asked_id in asked_ids[1:]:
        request = await request_of(session, asked_id)
        await session.caller(honest).call(oracle, request.propose(PRICE_NO))
    config = await session.worker.get("/market-config")
    terms = config["chains"][0]["resolutionStacks"][ResolutionType.OPTIMISTIC]
    await session.rpc.send("evm_increaseTime", terms["livenessSeconds"] + 1)
    await session.rpc.send("evm_mine")
    calls = [ContractCall(adapter, RESOLVE.encode(word_bytes(each))) for each in asked_ids]
    await session.caller(liar).call_all(calls)
    reports = [
        ContractCall(
            operator,
            neg_risk.RESOLVE_QUESTION.encode(word_bytes(parse_bytes32(row["questionID"]))),
        )
        for row in rows
    ]
    await session.caller(liar).call_all(reports)


async def test_an_event_of_disputed_answers_is_traded_and_redeemed_to_the_unit(
    stopped: Running,
) -> None:
    await stopped.start()
    async with stopped.session() as session:
        reader, deployment = Reader(session.rpc, session.deployment), session.deployment
        markets = await create(session)
        alice, bob = await trader(session), await trader(session)
        for market in markets[:2]:
            await place(session, alice, market.token_yes, Side.BUY, SET_UNITS, YES_UNITS)
            rest = SET_UNITS - YES_UNITS
            await place(session, bob, market.token_no, Side.BUY, SET_UNITS, rest)
        for market in markets[:2]:
            await wait_for_trades(session, bob, market, 1)
        await close_books(session)

        rows = [await listed(session, market) for market in markets]
        await answer(session, rows, await answerer(session), await answerer(session))
        for market in markets:
            await wait_until_closed(session, market)
        statuses = [(await listed(session, market))["umaResolutionStatuses"] for market in markets]
        assert [text.count("proposed") for text in statuses] == [2, 1, 1]
        assert [text.count("disputed") for text in statuses] == [1, 0, 0]

        adapter = deployment.address(ContractName.NEG_RISK_ADAPTER)
        for client, market, amounts in (
            (alice, markets[0], [SET_UNITS, 0]),
            (bob, markets[1], [0, SET_UNITS]),
        ):
            wallet = client.wallet
            before = await reader.collateral_units(wallet.maker)
            redeemed = neg_risk.REDEEM_SETS.encode(word_bytes(market.condition_id), amounts)
            await session.caller(wallet.private_key).call(adapter, redeemed)
            assert await reader.collateral_units(wallet.maker) - before == SET_UNITS
        held = [await reader.collateral_units(each.wallet.maker) for each in (alice, bob)]
        assert sum(held) == 2 * FUNDS_UNITS
        losing = [(bob.wallet.maker, AssetId(markets[0].token_no))]
        assert await reader.token_units(losing) == [SET_UNITS]
        await close_books(session)
