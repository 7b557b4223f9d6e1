"""Wallets that refuse their tokens, in a simulation or when mined, stop no trade (H-1)."""

from typing import Final

import pytest
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader
from tests.settlement.test_two_faced import HANDLER, REVERTING, a_two_faced_trader, parts_of

from foretell.domain.contracts.calldata import CLAIM_TOKENS
from foretell.domain.evm.transaction import TxStatus
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import OrderStatus
from foretell.domain.exchange.trade import TradeStatus

pytestmark = pytest.mark.anyio

CONFIRMED: Final = TradeStatus.CONFIRMED


@pytest.mark.parametrize("is_two_faced", [True, False])
async def test_h1_a_wallet_that_refuses_its_tokens_harms_itself_alone(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], *, is_two_faced: bool
) -> None:
    alice, _, taker = traders
    liar = await a_two_faced_trader(rig, market)
    if not is_two_faced:
        await rig.sandbox.rpc.send("anvil_setCode", HANDLER, REVERTING)
    fair = await alice.sell(market, 40, 10 * UNIT)
    lying = await liar.buy(market, 60, 10 * UNIT, is_yes=False)
    await taker.buy(market, 40, 20 * UNIT)
    await rig.settle()
    assert await parts_of(rig, [fair.order_id, lying.order_id]) == [CONFIRMED, CONFIRMED]
    assert [each.status for each in await rig.sent()] == [TxStatus.CONFIRMED]
    assert (await rig.order_row(lying.order_id)).status is OrderStatus.MATCHED
    await rig.check_ledger()
    refused = AssetId(str(market.tokens.no))
    exchange, friend = rig.exchange(market), traders[1].wallet
    assert await rig.chain_units(exchange, refused) == 10 * UNIT
    before = await rig.chain_units(friend, refused)
    await liar.execute(exchange, CLAIM_TOKENS.encode(market.tokens.no, friend))
    assert await rig.chain_units(friend, refused) == before + 10 * UNIT
    await rig.see()
    await rig.check_ledger()
