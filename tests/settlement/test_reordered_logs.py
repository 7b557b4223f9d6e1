"""The outcome of a batch does not depend on the order of its logs, and fees of the chain are accounted for.

Twins of audit findings: "reordered logs" and "fee per fill".
"""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import sqlalchemy as sa
from tests.rigs.fault_proxy import Answer, Fault, FaultProxy, Forward, Request
from tests.rigs.sandbox import SandboxMarket, an_indexer
from tests.settlement.rig import UNIT, SettlementRig, Trader

from foretell.chain.rpc import Rpc
from foretell.domain.contracts.calldata import Approve, OrderFill, encode_match_orders
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.settlement import Settlement
from foretell.domain.exchange.trade import TradeStatus
from foretell.settlement.match_call import Matched
from foretell.settlement.stored import load_matched
from foretell.store.tables import exchange_fills

pytestmark = pytest.mark.anyio

CONFIRMED, FAILED = TradeStatus.CONFIRMED, TradeStatus.FAILED
FEE_RATE_BPS: Final = 200


def reordering(rig: SettlementRig) -> Fault:
    """The node lists the exchange's logs of each transaction the other way round, in every answer."""
    node, deployment = rig.sandbox.rpc, rig.sandbox.deployment
    ours = {deployment.exchange, deployment.batch_settler}

    async def place_of(log: dict[str, Any]) -> int:
        receipt = await node.call("eth_getTransactionReceipt", log["transactionHash"])
        indexes = [int(each["logIndex"], 16) for each in receipt["logs"] if each["address"] in ours]
        moved = dict(zip(indexes, reversed(indexes), strict=True))
        index = int(log["logIndex"], 16)
        return moved.get(index, index)

    async def reordered(logs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        moved = [log | {"logIndex": hex(await place_of(log))} for log in logs]
        return sorted(
            moved, key=lambda log: (int(log["blockNumber"], 16), int(log["logIndex"], 16))
        )

    async def changed(result: Any) -> Any:
        if isinstance(result, list) and result and "logs" in result[0]:
            return [await changed(each) for each in result]
        if isinstance(result, dict):
            return result | {"logs": await reordered(result["logs"])}
        return result and await reordered(result)

    async def fault(_request: Request, forward: Forward) -> Answer | None:
        answer = await forward()
        return answer | {"result": await changed(answer["result"])}

    return fault


@pytest.fixture
async def reordered(rig: SettlementRig, proxy: FaultProxy) -> AsyncIterator[SettlementRig]:
    """The rig with batches, at a node that lists the exchange's logs of each transaction the other way round."""
    rig.has_batches = True
    await rig.restart()
    async with Rpc(proxy.url) as rpc:
        rig.indexer = an_indexer(rig.sandbox, rig.database, rpc)
        for method in ("eth_getLogs", "eth_getBlockReceipts", "eth_getTransactionReceipt"):
            proxy.fail_always(method, reordering(rig))
        yield rig


async def test_reordered_logs_a_batch_settles_and_fails_as_it_would_in_their_usual_order(
    reordered: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rig, (alice, bob, liar) = reordered, traders
    await alice.sell(market, 33, 10 * UNIT)
    await alice.buy(market, 61, 10 * UNIT, is_yes=False)
    wide = await bob.buy(market, 40, 20 * UNIT)
    await alice.sell(market, 40, 20 * UNIT)
    failing = await liar.buy(market, 40, 10 * UNIT)
    last = await bob.buy(market, 40, 10 * UNIT)
    deployment = rig.sandbox.deployment
    await rig.automine(is_on=False)
    await rig.act()
    await liar.overtake(deployment.collateral, Approve(deployment.exchange, 0).encode())
    await rig.sandbox.mine(2)
    await rig.automine(is_on=True)
    await rig.settle(step_ms=60_000)
    assert await rig.statuses([*wide.trade_ids, *failing.trade_ids, *last.trade_ids]) == [
        CONFIRMED,
        FAILED,
        CONFIRMED,
    ]
    assert len(await rig.sent()) == 1
    await rig.check_accounts()


async def matched_of(rig: SettlementRig, trade_id: str) -> Matched:
    await rig.projection.catch_up()
    (matched,) = await load_matched(rig.context, [Settlement(trade_id)])
    return matched


async def test_fee_per_fill_what_an_operator_charges_is_in_the_index_the_ledger_and_the_trade(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    """Settlement charges none. The exchange lets an operator charge up to what version 1 orders sign."""
    alice, bob, carol = traders
    fields = {"fee_rate_bps": FEE_RATE_BPS}
    await alice.sell(market, 33, 10 * UNIT, **fields)
    await carol.buy(market, 61, 10 * UNIT, is_yes=False, **fields)
    (trade_id,) = (await bob.buy(market, 40, 20 * UNIT, **fields)).trade_ids
    matched = await matched_of(rig, trade_id)
    before = await rig.chain_units(alice.wallet, COLLATERAL)
    trade = matched.row.trade
    fees = {alice.wallet: 20_000, carol.wallet: 30_000}
    makers = [
        OrderFill(matched.maker(fill).signed, fill.making_units, fees[fill.maker])
        for fill in trade.fills
    ]
    taker = OrderFill(matched.taker.signed, trade.taker_fill_units, 50_000)
    operator = rig.sandbox.account(AccountRole.OPERATOR)
    await rig.sandbox.call(operator, matched.exchange, encode_match_orders(taker, makers))
    await rig.sandbox.mine(2)
    await rig.see()
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    assert await rig.sent() == []
    async with rig.database.reading() as tx:
        charged = [row.fee_units for row in await tx.all(sa.select(exchange_fills.c.fee_units))]
    assert sorted(charged) == [20_000, 30_000, 50_000]
    paid = await rig.chain_units(alice.wallet, COLLATERAL) - before
    assert paid == trade.fills[0].taking_units - fees[alice.wallet]
    await rig.check_ledger()


async def test_fee_per_fill_settlement_charges_none_of_orders_that_sign_one(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 10 * UNIT, fee_rate_bps=FEE_RATE_BPS)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT, fee_rate_bps=FEE_RATE_BPS)).trade_ids
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    async with rig.database.reading() as tx:
        charged = [row.fee_units for row in await tx.all(sa.select(exchange_fills.c.fee_units))]
    assert charged == [0, 0]
    await rig.check_ledger()
