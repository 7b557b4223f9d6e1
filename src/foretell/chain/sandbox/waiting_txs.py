"""Transactions that wait for a block: a dump of the chain's state does not have them."""

from collections.abc import Sequence

import structlog

from foretell.chain.rpc import Rpc
from foretell.domain.errors.chain import RpcRefused
from foretell.domain.evm.broadcast import BroadcastResult, result_of_refusal
from foretell.domain.values.hexadecimal import keccak256

log = structlog.get_logger(__name__)


async def fetch_waiting(rpc: Rpc) -> list[str]:
    """Return the transactions that wait for a block, encoded; those behind a missing nonce, too."""
    pool = await rpc.send("txpool_content")
    waiting = [
        tx["hash"]
        for state in ("pending", "queued")
        for tx_by_nonce in pool[state].values()
        for tx in tx_by_nonce.values()
    ]
    return await rpc.batch([("eth_getRawTransactionByHash", [tx_hash]) for tx_hash in waiting])


async def send_waiting(rpc: Rpc, waiting: Sequence[str]) -> None:
    """Send encoded transactions again, and log each that the chain refuses."""
    for signed in waiting:
        try:
            await rpc.send("eth_sendRawTransaction", signed)
        except RpcRefused as refusal:
            if result_of_refusal(refusal.rpc_message) is not BroadcastResult.ACCEPTED:
                tx_hash = f"0x{keccak256(bytes.fromhex(signed[2:])).hex()}"
                reason = refusal.rpc_message
                log.warning("a waiting transaction is lost", tx=tx_hash, reason=reason)
