"""A barred wallet that signs by its code is probed for the signature of the order that is to blame (H-1)."""

from typing import Final

import pytest
from tests.rigs.fault_proxy import Answer, Fault, FaultProxy, Forward, Request
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader
from tests.settlement.test_versions import signed, wallet_trader
from tests.settlement.wallets.test_wallet_bars import bar_of

from foretell.domain.evm.transaction import SentTx, TxStatus
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import Address
from foretell.settlement.wallet_bars import SIGNATURE_PROBE_GAS

pytestmark = pytest.mark.anyio

OBEDIENT: Final = "0x5f3560e01c60e01b5f5260205ff3"
"""It answers with the selector that it was called with: it takes every token and accepts every signature."""
REFUSING_SIGNATURES: Final = "0x5f3560e01c80631626ba7e1460185760e01b5f5260205ff35b5f5ffd"
"""It takes every token, and fails when it is asked for a signature."""


def overtaking(rig: SettlementRig, wallet: Address) -> Fault:
    """The wallet changes its mind before a transaction of settlement is mined, and back after it."""

    async def fault(_request: Request, forward: Forward) -> Answer | None:
        await rig.sandbox.rpc.send("anvil_setCode", wallet, REFUSING_SIGNATURES)
        answer = await forward()
        await rig.sandbox.rpc.send("anvil_setCode", wallet, OBEDIENT)
        return answer

    return fault


async def a_barred_wallet(
    rig: SettlementRig, market: SandboxMarket, maker: Trader, proxy: FaultProxy
) -> Trader:
    """Have a wallet refuse its signature when it is asked in a block, and return its owner."""
    liar = await wallet_trader(rig, 3, 0, market)
    await rig.see()
    await maker.place(market, signed(maker, market, Side.SELL, 40, 10 * UNIT))
    await liar.place(market, signed(liar, market, Side.BUY, 40, 10 * UNIT))
    await rig.sandbox.rpc.send("anvil_setCode", liar.wallet, OBEDIENT)
    proxy.fail_always("eth_sendRawTransaction", overtaking(rig, liar.wallet))
    await rig.settle()
    found = await bar_of(rig, liar.wallet)
    assert found is not None
    assert found.is_barred
    return liar


async def probe(rig: SettlementRig) -> SentTx:
    """Have a probe be sent and followed to its end, and return it."""
    rig.clock.move(rig.bars.probe_delay_ms)
    for _ in range(4):
        await rig.act()
        await rig.sandbox.mine(2)
    (sent,) = [each for each in await rig.sent() if each.tx_id.startswith("probe:")]
    return sent


async def test_h1_a_wallet_that_only_takes_tokens_rightly_fails_the_probe_of_its_signature(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    liar = await a_barred_wallet(rig, market, traders[0], proxy)
    sent = await probe(rig)
    assert (sent.status, sent.gas) == (TxStatus.FAILED, SIGNATURE_PROBE_GAS)
    assert sent.target == rig.exchange(market)
    found = await bar_of(rig, liar.wallet)
    assert found is not None
    assert (found.is_barred, found.offences) == (True, 2)


async def test_h1_a_wallet_whose_signature_is_accepted_in_a_block_passes_its_probe(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy
) -> None:
    liar = await a_barred_wallet(rig, market, traders[0], proxy)
    proxy.heal()
    assert (await probe(rig)).status is TxStatus.CONFIRMED
    found = await bar_of(rig, liar.wallet)
    assert found is not None
    assert not found.is_barred
