"""The possible resolutions of markets that were created through the API."""

import pytest
from tests.creation.rig import CreationRig, CreatorClient
from tests.rigs.payloads import event_fields

from foretell.chain.artifacts import reason_of
from foretell.chain.reader import Payouts
from foretell.domain.contracts import neg_risk
from foretell.domain.contracts.calldata import PRICE_NO, PRICE_YES, YES_OR_NO_QUERY, Resolution
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.values.hexadecimal import Address, word_bytes
from foretell.store.creation.markets import MarketRow, load_markets

pytestmark = pytest.mark.anyio
GAS_MAX = 8_000_000

YES, NO = Payouts(1, 0, 1), Payouts(0, 1, 1)


async def made(creator: CreatorClient, mode: str) -> list[MarketRow]:
    """Return the markets of an event that was created."""
    rig = creator.rig
    await creator.finalized(creator.payload(**event_fields(mode, count=2)))
    async with rig.database.reading() as tx:
        return await load_markets(tx)


async def answer(rig: CreationRig, market: MarketRow, price: int) -> str | None:
    """Resolve a market as its proposer; return the revert reason, or None on success."""
    sandbox, address = rig.sandbox, rig.sandbox.deployment.address
    asked_id = market.neg_risk_request_id or market.question_id
    question = await sandbox.reader.question(asked_id, market.oracle)
    assert question is not None
    if market.is_neg_risk:
        calldata = neg_risk.PROPOSE_AND_RESOLVE_NEG_RISK.encode(
            market.oracle,
            address(ContractName.NEG_RISK_OPERATOR),
            word_bytes(asked_id),
            word_bytes(market.question_id),
            YES_OR_NO_QUERY,
            question.asked_at_s,
            question.ancillary_data,
            price,
        )
    else:
        text = question.ancillary_data
        calldata = Resolution(market.oracle, asked_id, question.asked_at_s, text, price).encode()
    proposer = sandbox.account(AccountRole.PROPOSER)
    oracle: Address = address(ContractName.DIRECT_RESOLUTION_ORACLE)
    reverted = await sandbox.reader.revert_of(proposer.address, oracle, calldata, GAS_MAX)
    if reverted is not None:
        return reason_of(reverted)
    await sandbox.call(proposer, oracle, calldata)
    return None


async def payouts(rig: CreationRig, markets: list[MarketRow]) -> list[Payouts | None]:
    reader = rig.sandbox.reader
    return [await reader.payouts(market.condition_id) for market in markets]


@pytest.mark.spec(19)
async def test_several_options_of_multi_multiple_may_be_true(creator: CreatorClient) -> None:
    markets = await made(creator, "multi_multiple")

    answers = [await answer(creator.rig, market, PRICE_YES) for market in markets]

    assert answers == [None, None]
    assert await payouts(creator.rig, markets) == [YES, YES]


@pytest.mark.spec(19)
async def test_a_second_option_of_multi_unique_cannot_be_true(creator: CreatorClient) -> None:
    markets = await made(creator, "multi_unique")

    answers = [
        await answer(creator.rig, market, price)
        for market, price in zip(
            (markets[0], markets[1], markets[1]), (PRICE_YES, PRICE_YES, PRICE_NO), strict=True
        )
    ]

    assert answers == [None, "MarketAlreadyDetermined", None]
    assert await payouts(creator.rig, markets) == [YES, NO]
