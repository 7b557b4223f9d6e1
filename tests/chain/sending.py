"""Helpers of the sender's tests: reads of the chain and of stored rows."""

from collections.abc import Callable
from typing import Final

from tests.rigs.sandbox import Sandbox

from foretell.chain.sender import Sender, SenderOptions
from foretell.domain.evm.transaction import OutgoingTx, SentTx
from foretell.domain.values.hexadecimal import Address
from foretell.store.outbox.transactions import TxOutbox

SPENDER: Final = Address("0x" + "5e" * 20)
OPTIONS: Final = SenderOptions(chain_id=80002, confirmations=1)

MakeSender = Callable[..., Sender]
Approving = Callable[..., OutgoingTx]


async def allowed(sandbox: Sandbox) -> int:
    return await sandbox.reader.allowance_units(sandbox.trader().address, SPENDER)


async def set_base_fee(sandbox: Sandbox, base_fee_wei: int) -> None:
    await sandbox.rpc.send("anvil_setNextBlockBaseFeePerGas", hex(base_fee_wei))
    await sandbox.mine()


async def used_nonces(sandbox: Sandbox) -> int:
    address = sandbox.trader().address
    return int(await sandbox.rpc.call("eth_getTransactionCount", address, "latest"), 16)


async def stored(outbox: TxOutbox, tx_id: str = "approve-1") -> SentTx:
    tx = await outbox.load(tx_id)
    assert tx is not None
    return tx
