"""Calls that are waited for, for setting up a chain.

Products send through `Sender`, which survives a crash. `SetupCaller` does not: its caller must check
what is on the chain, and call again for what is missing.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from foretell.chain.fees import fetch_fees
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import Receipt, quantity_of, receipt_of
from foretell.chain.sending_account import FEE_CAP_WEI
from foretell.chain.smaller_reads import BatchReader
from foretell.domain.errors.chain import CallFailed, ChainUnavailable
from foretell.domain.evm.raw_transaction import TxFields, sign_tx
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address, Bytes32

RECEIPT_DEADLINE_S: Final = 120.0
RECEIPT_POLL_S: Final = 0.02
GAS_MARGIN_PERCENT: Final = 20


class SetupCaller:
    """One key on one chain. With `mines` it has the sandbox's node mine each call."""

    def __init__(self, rpc: Rpc, private_key: bytes, chain_id: int, *, mines: bool = False) -> None:
        self._rpc = rpc
        self._private_key = private_key
        self._chain_id = chain_id
        self._mines = mines
        self.address: Address = address_of_key(private_key)

    async def call(self, target: Address, calldata: bytes, gas: int | None = None) -> Receipt:
        """Return the receipt of a call once it is in a block; refuses a call that reverts."""
        return (await self.call_all([ContractCall(target, calldata, gas)]))[0]

    async def call_all(self, calls: Sequence[ContractCall]) -> list[Receipt]:
        """Return the receipts of calls in their order; they are sent without waiting for each other."""
        if not calls:
            return []
        fees = await fetch_fees(self._rpc, FEE_CAP_WEI)
        nonce = await self._nonce("pending")
        hashes = []
        for offset, call in enumerate(calls):
            gas = call.gas or await self._estimated(call)
            fields = TxFields(
                self._chain_id,
                nonce + offset,
                fees,
                gas,
                call.target,
                call.calldata,
                call.value_wei,
            )
            signed = sign_tx(fields, self._private_key)
            await self._rpc.send("eth_sendRawTransaction", "0x" + signed.raw.hex())
            hashes.append(signed.tx_hash)
        if self._mines:
            await self._rpc.send("evm_mine")
        receipts = await wait_for_receipts(self._rpc, hashes)
        for receipt in receipts:
            if not receipt.is_success:
                raise CallFailed(receipt.tx_hash)
        return receipts

    async def wait_for_earlier(self, deadline_s: float = RECEIPT_DEADLINE_S) -> None:
        """Wait until no transaction of the key is pending, such as one of an interrupted run."""
        pending = await self._pending()
        if pending and self._mines:
            await self._rpc.send("evm_mine")
        for _ in range(int(deadline_s / RECEIPT_POLL_S)):
            if not pending:
                return
            await asyncio.sleep(RECEIPT_POLL_S)
            pending = await self._pending()
        cause = f"{pending} transactions of {self.address} are pending after {deadline_s:g} s"
        raise ChainUnavailable("eth_getTransactionCount", cause)

    async def _pending(self) -> int:
        """Return how many transactions of the key are pending."""
        return await self._nonce("pending") - await self._nonce("latest")

    async def _nonce(self, at: str) -> int:
        answer = await self._rpc.call("eth_getTransactionCount", self.address, at)
        return quantity_of(answer, "eth_getTransactionCount")

    async def _estimated(self, call: ContractCall) -> int:
        request = {
            "from": self.address,
            "to": call.target,
            "data": "0x" + call.calldata.hex(),
            "value": hex(call.value_wei),
        }
        answer = await self._rpc.call("eth_estimateGas", request, "pending")
        gas = quantity_of(answer, "eth_estimateGas")
        return gas + gas * GAS_MARGIN_PERCENT // 100


async def wait_for_receipts(
    rpc: Rpc, hashes: Sequence[Bytes32], deadline_s: float = RECEIPT_DEADLINE_S
) -> list[Receipt]:
    """Return the receipts of transactions once all of them are in blocks.

    Whom a transaction calls may have it emit logs without number, so receipts may be too large for one answer.
    """
    batches, found = BatchReader(rpc), dict[Bytes32, Receipt]()
    try:
        async with asyncio.timeout(deadline_s):
            while missing := [tx_hash for tx_hash in hashes if tx_hash not in found]:
                calls = [("eth_getTransactionReceipt", [tx_hash]) for tx_hash in missing]
                receipts = await batches.read(dict[str, Any], calls, _mined)
                found |= {receipt.tx_hash: receipt for receipt in receipts}
                if len(found) < len(hashes):
                    await asyncio.sleep(RECEIPT_POLL_S)
    except TimeoutError as error:
        cause = f"{len(hashes) - len(found)} transactions are in no block after {deadline_s:g} s"
        raise ChainUnavailable("eth_getTransactionReceipt", cause) from error
    return [found[tx_hash] for tx_hash in hashes]


def _mined(answers: Sequence[object]) -> list[Receipt]:
    """Return the receipts among a node's answers."""
    return [receipt for receipt in map(receipt_of, answers) if receipt is not None]
