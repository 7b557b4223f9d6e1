"""Contracts that emit logs until little gas is left, and blocks in which they are called.

The bounds of the tests are those of `Rpc` at a sixty-fourth: 1 MiB for an answer, and blocks with receipts of 3/4 MiB.
"""

from typing import Final

from tests.rigs.sandbox import Sandbox

from foretell.chain.rpc import Rpc
from foretell.domain.contracts.calldata import Approve, Transfer
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID, SandboxAccount
from foretell.domain.values.hexadecimal import Address

BYTES_MAX: Final = 2**20
SPAM_GAS: Final = 850_000
"""The gas of a transaction whose receipt has 3/4 MiB."""
SPAMMER: Final = Address("0x" + "ab" * 20)
RECEIVER: Final = Address("0x" + "4e" * 20)

_GAS_LEFT: Final = 60_000
_LOOP: Final = "5b" + "5f5fa0" * 16 + f"5a62{_GAS_LEFT:06x}10" + "5f57" + "00"
"""JUMPDEST; sixteen times LOG0 of nothing; back to the start while there is gas."""


def small_rpc(url: str) -> Rpc:
    return Rpc(url, SANDBOX_CHAIN_ID, answer_bytes_max=BYTES_MAX)


async def make_spammer(sandbox: Sandbox) -> None:
    await sandbox.rpc.send("anvil_setCode", SPAMMER, "0x" + _LOOP)


async def send(sandbox: Sandbox, sender: SandboxAccount, target: Address, data: bytes = b"") -> str:
    """Return the hash of a transaction that waits for a block."""
    call = {"from": sender.address, "to": target, "data": "0x" + data.hex(), "gas": hex(SPAM_GAS)}
    return str(await sandbox.rpc.send("eth_sendTransaction", call))


async def mine_spam(sandbox: Sandbox, *, calls: int = 1) -> int:
    """Return the number of a block with so many calls of the spammer between a payment and an approval."""
    collateral = sandbox.deployment.collateral
    await send(sandbox, sandbox.trader(0), collateral, Transfer(RECEIVER, 1).encode())
    for _ in range(calls):
        await send(sandbox, sandbox.trader(1), SPAMMER)
    await send(sandbox, sandbox.trader(0), collateral, Approve(RECEIVER, 2).encode())
    await sandbox.mine()
    return await sandbox.reader.head()
