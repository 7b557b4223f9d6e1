"""Packed matches where the exchange takes them, and `matchOrders` at an earlier one."""

import pytest
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader

from foretell.domain.contracts.calldata import MATCH_ORDERS
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.packed_match import MATCH_PACKED
from foretell.domain.exchange.settlement import Settlement
from foretell.domain.exchange.trade import TradeStatus
from foretell.settlement.call_forms import CallForms
from foretell.settlement.match_call import match_call
from foretell.settlement.stored import load_matched

pytestmark = pytest.mark.anyio


async def a_trade(market: SandboxMarket, traders: list[Trader]) -> str:
    """Match a trade, and return its id."""
    alice, bob, _ = traders
    await alice.sell(market, 40, UNIT)
    (trade_id,) = (await bob.buy(market, 40, UNIT)).trade_ids
    return trade_id


async def test_a_trade_settles_by_a_packed_call(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    trade_id = await a_trade(market, traders)
    await rig.settle()
    (sent,) = await rig.sent()
    assert sent.calldata[:4] == MATCH_PACKED.selector
    assert await rig.statuses([trade_id]) == [TradeStatus.CONFIRMED]


@pytest.mark.parametrize("name", [ContractName.CONDITIONAL_TOKENS, ContractName.COLLATERAL])
async def test_a_contract_that_does_not_know_packed_matches_takes_none(
    rig: SettlementRig, name: ContractName
) -> None:
    """The first answers no, as an earlier exchange does; the second has no such view."""
    address = rig.sandbox.deployment.contracts[name].address
    assert not await CallForms().is_packed(rig.context.operator, address)


async def test_both_forms_settle_the_same_trade(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    trade_id = await a_trade(market, traders)
    await rig.projection.catch_up()
    (matched,) = await load_matched(rig.context, [Settlement(trade_id)])
    assert matched.is_packed
    packed = match_call(matched, "")
    plain = match_call(matched._replace(is_packed=False), "")
    assert plain.calldata[:4] == MATCH_ORDERS.selector
    assert len(packed.calldata) < len(plain.calldata) / 3
    for call in (packed, plain):
        assert await rig.context.operator.revert_of(call) is None
