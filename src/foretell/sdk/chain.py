"""A signer's own transactions: stored before they are sent, so that none is sent twice."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from foretell.domain.errors.chain import (
    CallFailed,
    ChainUnavailable,
    RpcRefused,
    TransactionReplaced,
)
from foretell.domain.evm.abi import ContractFunction
from foretell.domain.evm.broadcast import BroadcastResult, result_of_refusal
from foretell.domain.evm.raw_transaction import Fees, TxFields
from foretell.domain.evm.transaction import ContractCall, opening_fees
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.sdk.json_rpc import JsonRpc
from foretell.sdk.pauses import growing_pauses_s
from foretell.sdk.signing.signers import Signer

FEE_CAP_WEI: Final = 10**12
PRIORITY_FEE_WEI_MIN: Final = 1_000_000
GAS_MARGIN_PERCENT: Final = 20
RECEIPT_DEADLINE_S: Final = 180.0
RECEIPT_POLL_S_MAX: Final = 1.0
RECEIPT_POLL_S: Final = 0.05
REPLACED_AFTER_S: Final = 3.0
"""A node counts a nonce as used before it has the receipt, or two nodes behind one address do."""

GOES_ON: Final = frozenset(
    {
        BroadcastResult.ACCEPTED,
        BroadcastResult.NONCE_USED,
        BroadcastResult.UNCERTAIN,
        BroadcastResult.LATER,
    }
)
"""Refusals after which the same transaction may be, or come to be, in a block."""


class TxReceipt(msgspec.Struct, frozen=True):
    """A transaction that is in a block."""

    tx_hash: Bytes32
    block_number: int
    is_success: bool
    contract: Address | None = None


class StoredTx(msgspec.Struct, frozen=True):
    """A signed transaction as it is kept until it is in a block."""

    tx_hash: Bytes32
    raw: str
    account_nonce: int


class ChainAccount:
    """A signer's account on a chain."""

    def __init__(self, rpc: JsonRpc, signer: Signer, chain_id: int) -> None:
        self.rpc = rpc
        self.signer = signer
        self.chain_id = chain_id

    @property
    def address(self) -> Address:
        """The address that sends."""
        return self.signer.address

    async def call_all(self, calls: Sequence[ContractCall]) -> list[TxReceipt]:
        """Return the receipts of calls, sent one after the other; refuse one that reverts."""
        return [await self.call(call) for call in calls]

    async def call(
        self, call: ContractCall, store: Callable[[StoredTx], object] = lambda _: None
    ) -> TxReceipt:
        """Return the receipt of a call; the signed transaction is stored before it is sent."""
        stored = await self.sign(call.target, call)
        store(stored)
        return await self.send(stored)

    async def deploy(self, code: bytes) -> TxReceipt:
        """Return the receipt of a new contract."""
        call = ContractCall(self.address, code)
        return await self.send(await self.sign(None, call))

    async def send(self, stored: StoredTx) -> TxReceipt:
        """Send a signed transaction, or find it on the chain; refuse one that reverts.

        The same bytes may be sent any number of times: they have one nonce and one hash. One whose
        nonce another transaction has used is refused: it never happened and never will.
        """
        receipt = await self._receipt(stored.tx_hash)
        if receipt is None:
            await self._broadcast(stored)
            receipt = await self._wait(stored)
        if not receipt.is_success:
            raise CallFailed(receipt.tx_hash)
        return receipt

    async def sign(self, target: Address | None, call: ContractCall) -> StoredTx:
        """Return a call, signed with the account's next nonce and fees of this moment."""
        gas = call.gas or await self._estimated_gas(target, call)
        nonce = await self._number("eth_getTransactionCount", self.address, "pending")
        fields = TxFields(
            self.chain_id, nonce, await self._fees(), gas, target, call.calldata, call.value_wei
        )
        signed = await self.signer.sign_transaction(fields)
        return StoredTx(signed.tx_hash, "0x" + signed.raw.hex(), nonce)

    async def read(self, contract: Address, function: ContractFunction, *arguments: object) -> Any:
        """Return the result of a view: its one value, or all of them."""
        request = {"to": contract, "data": "0x" + function.encode(*arguments).hex()}
        answer = await self.rpc.call("eth_call", request, "latest")
        values = function.decode_result(bytes.fromhex(answer[2:]))
        return values[0] if len(values) == 1 else values

    async def coins_wei(self) -> int:
        """Return the account's native coin, which pays for gas."""
        return await self._number("eth_getBalance", self.address, "latest")

    async def _broadcast(self, stored: StoredTx) -> None:
        try:
            await self.rpc.send("eth_sendRawTransaction", stored.raw)
        except ChainUnavailable:
            return  # it may have arrived: the receipt decides, and it is sent again meanwhile
        except RpcRefused as refused:
            if result_of_refusal(refused.rpc_message) not in GOES_ON:
                raise

    async def _wait(self, stored: StoredTx) -> TxReceipt:
        pauses_s = growing_pauses_s(RECEIPT_POLL_S, RECEIPT_POLL_S_MAX)
        loop, used_at_s = asyncio.get_running_loop(), None
        try:
            async with asyncio.timeout(RECEIPT_DEADLINE_S):
                while (receipt := await self._receipt(stored.tx_hash)) is None:
                    if used_at_s is not None and loop.time() - used_at_s >= REPLACED_AFTER_S:
                        raise TransactionReplaced(stored.tx_hash)
                    pause_s = next(pauses_s)
                    await asyncio.sleep(pause_s)
                    if not await self._is_used(stored.account_nonce):
                        used_at_s = None
                    elif used_at_s is None:
                        used_at_s = loop.time()
                    if pause_s > RECEIPT_POLL_S_MAX / 2:
                        await self._broadcast(stored)
        except TimeoutError as error:
            cause = f"{stored.tx_hash} is in no block after {RECEIPT_DEADLINE_S:g} s"
            raise ChainUnavailable("eth_getTransactionReceipt", cause) from error
        return receipt

    async def _is_used(self, nonce: int) -> bool:
        """Return whether a transaction with the nonce is in a block."""
        return await self._number("eth_getTransactionCount", self.address, "latest") > nonce

    async def _receipt(self, tx_hash: Bytes32) -> TxReceipt | None:
        answer = await self.rpc.call("eth_getTransactionReceipt", tx_hash)
        if answer is None or answer.get("blockNumber") is None:
            return None
        return TxReceipt(
            tx_hash,
            int(answer["blockNumber"], 16),
            answer["status"] == "0x1",
            answer.get("contractAddress"),
        )

    async def _estimated_gas(self, target: Address | None, call: ContractCall) -> int:
        request = {
            "from": self.address,
            "data": "0x" + call.calldata.hex(),
            "value": hex(call.value_wei),
        }
        if target is not None:
            request["to"] = target
        gas = await self._number("eth_estimateGas", request, "pending")
        return gas + gas * GAS_MARGIN_PERCENT // 100

    async def _fees(self) -> Fees:
        block = await self.rpc.call("eth_getBlockByNumber", "latest", False)  # noqa: FBT003 - a parameter of JSON-RPC
        base_fee_wei = int(block["baseFeePerGas"], 16)
        try:
            tip_wei = await self._number("eth_maxPriorityFeePerGas")
        except RpcRefused:
            tip_wei = 0
        return opening_fees(base_fee_wei, max(tip_wei, PRIORITY_FEE_WEI_MIN), FEE_CAP_WEI)

    async def _number(self, method: str, *params: object) -> int:
        return int(await self.rpc.call(method, *params), 16)
