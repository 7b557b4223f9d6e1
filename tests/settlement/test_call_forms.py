"""Packed matches where the exchange takes them, and `matchOrders` at an earlier one."""

from typing import Final

import pytest
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader

from foretell.domain.contracts.calldata import MATCH_ORDERS, Approve
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.packed_match import MATCH_PACKED
from foretell.domain.exchange.settlement import Settlement, is_batch
from foretell.domain.exchange.trade import TradeStatus
from foretell.settlement.call_forms import CallForms
from foretell.settlement.match_call import Matched, match_call
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


GAS_OF_MOVE: Final = 10_000
"""Less than the exchange saves for each order whose wallet is that of the order before."""


@pytest.mark.parametrize("is_packed", [False, True])
async def test_makers_of_one_wallet_are_neighbours_in_the_call(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], *, is_packed: bool
) -> None:
    alice, bob, carol = traders
    for price_ticks in (40, 42):
        await alice.sell(market, price_ticks, UNIT)
        await bob.sell(market, price_ticks + 1, UNIT)
    (trade_id,) = (await carol.buy(market, 43, 4 * UNIT)).trade_ids
    await rig.projection.catch_up()
    (matched,) = await load_matched(rig.context, [Settlement(trade_id)])
    makers = [fill.maker for fill in matched.row.trade.fills]
    assert makers == [alice.wallet, bob.wallet] * 2
    form = matched._replace(is_packed=is_packed)
    gas = [await gas_of(rig, form._replace(is_sorted=is_sorted)) for is_sorted in (True, False)]
    assert gas[0] < gas[1] - 2 * GAS_OF_MOVE
    await rig.settle()
    assert await rig.statuses([trade_id]) == [TradeStatus.CONFIRMED]
    await rig.check_ledger()


async def gas_of(rig: SettlementRig, matched: Matched) -> int:
    call = match_call(matched, "")
    request = {"from": rig.context.operator.address, "to": call.target}
    answer = await rig.sandbox.rpc.call(
        "eth_estimateGas", {**request, "data": "0x" + call.calldata.hex()}
    )
    return int(answer, 16)


async def test_a_trade_that_failed_in_a_batch_of_an_earlier_version_goes_on_alone(
    rig: SettlementRig,
    market: SandboxMarket,
    traders: list[Trader],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its call had the makers in the order of their fills."""
    rig.has_batches = True
    await rig.restart()
    alice, bob, carol = traders
    poor = await rig.trader(6)
    await rig.see()
    for price_ticks in (40, 42):
        await bob.sell(market, price_ticks, UNIT)
        await alice.sell(market, price_ticks + 1, UNIT)
    (doomed,) = (await poor.buy(market, 43, 4 * UNIT)).trade_ids
    await alice.sell(market, 45, UNIT)
    (fair,) = (await carol.buy(market, 45, UNIT)).trade_ids
    await rig.automine(is_on=False)
    with monkeypatch.context() as patch:
        patch.setattr("foretell.settlement.match_call._by_wallet", lambda _: 0)
        await rig.act()
    (sent,) = await rig.sent()
    assert is_batch(sent.tx_id)
    collateral, exchange = rig.sandbox.deployment.collateral, rig.sandbox.deployment.exchange
    await poor.overtake(collateral, Approve(exchange, 0).encode())
    await rig.sandbox.mine(2)
    await rig.automine(is_on=True)
    await rig.settle(step_ms=60_000)
    assert await rig.statuses([doomed, fair]) == [TradeStatus.FAILED, TradeStatus.CONFIRMED]
    await rig.check_ledger()
