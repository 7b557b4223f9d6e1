"""An exchange of an earlier version, whose matches revert where a receiver refuses its tokens.

`earlier/exchange.xz` has its code without the immutables. These and the storage have the same places in the
present version, so its code is placed at the address of the deployed exchange.
"""

import json
import lzma
from pathlib import Path
from typing import Final

from tests.contracts.evm import COMMITTED
from tests.rigs.sandbox import Sandbox

from foretell.domain.values.hexadecimal import Address

CODE: Final = Path(__file__).parent / "earlier" / "exchange.xz"


async def place_earlier_exchanges(sandbox: Sandbox) -> None:
    """Give both exchanges of the sandbox the code of the earlier version."""
    deployment = sandbox.deployment
    for exchange in (deployment.exchange, deployment.neg_risk_exchange):
        await _place(sandbox, exchange)


async def _place(sandbox: Sandbox, exchange: Address) -> None:
    deployed = str(await sandbox.rpc.call("eth_getCode", exchange, "latest"))
    code = bytes.fromhex(deployed.removeprefix("0x"))
    artifact = json.loads((COMMITTED / "Exchange.json").read_text())
    present = bytes.fromhex(artifact["deployedBytecode"].removeprefix("0x"))
    assert code.startswith(present)
    immutables = code[len(present) :]
    earlier = lzma.decompress(CODE.read_bytes())
    await sandbox.rpc.send("anvil_setCode", exchange, "0x" + (earlier + immutables).hex())
