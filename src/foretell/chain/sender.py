"""One account's queue of transactions: simulate, reserve, sign, store, broadcast, watch.

A transaction has an id, and an id is executed at most once: the nonce and the signed bytes are
stored before they are broadcast, so a crash leaves either nothing or a row that the watcher
continues. Broadcasting the same bytes twice does nothing, and an unknown outcome never leads to a
second transaction.

Only one process may send for an account. A second one by mistake does no harm: the store refuses a
nonce that is taken.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import structlog

from foretell.chain.broadcaster import REPLACED_PREFIX, Broadcaster
from foretell.chain.deployed_code import fetch_codes
from foretell.chain.nonce_use import idle_accounts
from foretell.chain.outbox import Outbox
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import Receipt, bytes_of, quantity_of, receipt_of
from foretell.chain.sending_account import (
    FEE_CAP_WEI,
    AccountLines,
    AttemptTimes,
    SenderOptions,
    SendingAccount,
)
from foretell.chain.unknown_nonces import unknown_nonces
from foretell.chain.views import ViewCall, call_views, revert_of_call
from foretell.chain.watcher import UNFINISHED_MAX, Watcher
from foretell.domain.errors.chain import ChainUnavailable, ExecutionReverted, RpcRefused
from foretell.domain.errors.families import Upstream
from foretell.domain.evm.transaction import OutgoingTx, SentTx
from foretell.domain.values.call_trace import FailedCall, failed_calls
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.runtime.watch import Watch
from foretell.runtime.worker import PollIntervals, run_worker

GAS_MARGIN_PERCENT: Final = 20
"""Added to the estimate: other transactions before it in the block may make a call cost more."""

SIMULATED_AT: Final = "pending"
CALL_TRACER: Final = {"tracer": "callTracer"}
TRACE_S: Final = 10.0
TRACE_BYTES_MAX: Final = 4 * 1024 * 1024
REPLACED_AT_ONCE_MAX: Final = 50
"""Most unknown transactions that are replaced in one step."""
PACE: Final = PollIntervals(busy_s=0.25, idle_s=15.0)

log = structlog.get_logger(__name__)

__all__ = ["FEE_CAP_WEI", "Outbox", "Sender", "SenderOptions", "UnknownTxs"]


class UnknownTxs(NamedTuple):
    """The nonces of transactions that are not in the outbox, and how many are being replaced."""

    nonces: range
    replacing: int

    @property
    def waiting(self) -> int:
        """How many transactions have no final outcome that is known here."""
        return len(self.nonces) + self.replacing


class Sender:
    """The transactions of one account, from the call to the final outcome."""

    def __init__(
        self,
        rpc: Rpc,
        private_key: bytes,
        outbox: Outbox,
        options: SenderOptions,
        now_ms: Callable[[], int],
    ) -> None:
        self._rpc = rpc
        self._outbox = outbox
        self._has_simulated_price = options.has_simulated_price
        self.address = address_of_key(private_key)
        times, lines = AttemptTimes(now_ms), AccountLines(now_ms)
        account = SendingAccount(self.address, rpc, outbox, options, now_ms, times, lines)
        self._lock = account.lock
        self._broadcaster = Broadcaster(account, private_key)
        self._watcher = Watcher(account, self._broadcaster)
        self._wakes = Watch()
        self._has_named_former_keys = False

    async def send(self, tx: OutgoingTx, *, is_simulated: bool = False) -> SentTx:
        """Send a transaction, or return its state when its id was sent before.

        Raises ExecutionReverted, with nothing stored or sent, when the call would revert now. A
        PENDING result means that no node is known to have it yet; the watcher broadcasts it again.
        With `is_simulated`, a call with stated gas is not simulated again.
        """
        if (known := await self._known(tx)) is not None:
            return known
        gas = tx.gas if is_simulated and tx.gas is not None else await self._simulate(tx)
        async with self._lock:
            if (known := await self._known(tx)) is not None:
                return known
            reserved = await self._broadcaster.reserve(tx, gas)
            self._wakes.wake()
            return await self._broadcaster.push(reserved)

    async def send_all(self, txs: Sequence[OutgoingTx]) -> None:
        """Send transactions with stated gas that were simulated, with nonces in their order.

        Their nonces are stored together and then broadcast together. One whose id was sent before is not
        sent again.
        """
        assert all(tx.gas is not None for tx in txs)
        async with self._lock:
            known_by_id = {
                each.tx_id: each for each in await self._outbox.load_all([tx.tx_id for tx in txs])
            }
            for tx in txs:
                if tx.tx_id in known_by_id:
                    known_by_id[tx.tx_id].check_same(tx)
            new = [(tx, tx.gas or 0) for tx in txs if tx.tx_id not in known_by_id]
            if new:
                reserved = await self._broadcaster.reserve_all(new)
                self._wakes.wake()
                await self._broadcaster.push_all(reserved)

    async def call_views(self, calls: list[ViewCall]) -> list[Any]:
        """Return the results of views, in their order, in the state that calls are simulated in."""
        return await call_views(self._rpc, calls, SIMULATED_AT)

    async def revert_of(self, tx: OutgoingTx, at: str = SIMULATED_AT) -> ExecutionReverted | None:
        """Return the revert that a transaction would end in, or None when it would succeed."""
        return await revert_of_call(self._rpc, await self._request(tx), at)

    async def revert_for(
        self, account: Address, target: Address, calldata: bytes
    ) -> ExecutionReverted | None:
        """Return the revert that a call by another account would end in, or None when it would succeed."""
        call = {"from": account, "to": target, "data": "0x" + calldata.hex()}
        return await revert_of_call(self._rpc, call, SIMULATED_AT)

    async def check_accepts(self, tx: OutgoingTx) -> None:
        """Raise RpcRefused if the node does not run such a call of the account, or has no nonce for it; reverts pass."""
        await self.revert_of(tx)
        await self._rpc.call("eth_getTransactionCount", self.address, SIMULATED_AT)

    async def affordable(self, gas: int) -> int:
        """Return how many transactions of this gas the account's coin pays for at the present fees."""
        balance = await self._rpc.call("eth_getBalance", self.address, "latest")
        fees = await self._broadcaster.opening_fees()
        return quantity_of(balance, "eth_getBalance") // (gas * fees.max_fee_wei)

    async def max_fee_wei(self) -> int:
        """Return the highest price of a unit of gas in a first attempt now."""
        return (await self._broadcaster.opening_fees()).max_fee_wei

    async def result_of(self, tx: OutgoingTx, at: str = SIMULATED_AT) -> bytes:
        """Return what the call of a transaction would return now, or raise ExecutionReverted."""
        return bytes_of(await self._rpc.call("eth_call", await self._request(tx), at), "eth_call")

    async def results_of(
        self, txs: Sequence[OutgoingTx], at: str = SIMULATED_AT
    ) -> list[bytes | RpcRefused]:
        """Return what the calls of transactions would return now, each without those before it.

        In the place of a call that the node refuses or that reverts is the refusal.
        """
        asked = [("eth_call", [await self._request(tx), at]) for tx in txs]
        answers = await self._rpc.send_all(asked)
        return [
            each if isinstance(each, RpcRefused) else bytes_of(each, "eth_call") for each in answers
        ]

    async def head(self) -> int:
        """Return the number of the newest block."""
        return quantity_of(await self._rpc.call("eth_blockNumber"), "eth_blockNumber")

    async def accounts_without_code(self, accounts: Sequence[Address]) -> list[Address]:
        """Return which of these accounts have no code at the newest block."""
        codes = await fetch_codes(self._rpc, accounts)
        return [account for account, code in zip(accounts, codes, strict=True) if not code]

    async def idle_accounts(
        self, accounts: Sequence[Address], block_number: int, contracts: Collection[Address]
    ) -> frozenset[Address]:
        """Return the accounts without code that did nothing in a block and that no log of these contracts names."""
        return await idle_accounts(self._rpc, accounts, block_number, contracts)

    async def unknown_txs(self) -> UnknownTxs:
        """Return the transactions of the account that wait at the node and are not in the outbox.

        The nonces of a gap before one of them count too: that one is mined once they are used.
        """
        nonces = await unknown_nonces(self._rpc, self._outbox, self.address)
        unfinished = await self._outbox.load_unfinished(self.address, UNFINISHED_MAX)
        replacing = sum(each.tx_id.startswith(REPLACED_PREFIX) for each in unfinished)
        return UnknownTxs(nonces, replacing)

    async def replace_unknown(self, nonces: range) -> range:
        """Use up the first of these nonces by empty transactions, and return which they are.

        Either the transaction that has such a nonce or the empty one is mined, never both. The last one
        goes first: the empty transaction in a gap would release those behind it.
        """
        first = nonces[:REPLACED_AT_ONCE_MAX]
        async with self._lock:
            for account_nonce in reversed(first):
                await self._broadcaster.replace_unknown(account_nonce)
        self._wakes.wake()
        return first

    async def receipt(self, tx_hash: Bytes32) -> Receipt | None:
        """Return the receipt of a transaction, or None while the node shows none."""
        return receipt_of(await self._rpc.call("eth_getTransactionReceipt", tx_hash))

    async def failed_calls(self, tx_hash: Bytes32) -> list[FailedCall]:
        """Return the calls that made a mined transaction revert; none if the node gives no trace.

        A wallet can make its trace as large and as slow as its gas allows, so the trace is asked for once, and
        what comes late or is too large is none.
        """
        try:
            async with asyncio.timeout(TRACE_S):
                trace = await self._rpc.send(
                    "debug_traceTransaction",
                    tx_hash,
                    CALL_TRACER,
                    answer_bytes_max=TRACE_BYTES_MAX,
                )
        except (RpcRefused, ChainUnavailable, TimeoutError) as error:
            log.warning("node gives no trace", cause=str(error) or f"not within {TRACE_S} s")
            return []
        return failed_calls(trace)

    async def run(self, beside: Collection[Address] = ()) -> None:
        """Watch transactions, of this process and earlier ones, until cancelled.

        The process has the keys of the accounts `beside`, too.
        """
        name = f"transactions of {self.address}"
        watch = partial(self._watch, beside)
        await run_worker(name, watch, PACE, self._wakes.wait, expected=(Upstream,))

    async def _watch(self, beside: Collection[Address]) -> bool:
        if not self._has_named_former_keys:
            await self.name_former_keys(beside)
            self._has_named_former_keys = True
        return await self.run_once() > 0

    async def name_former_keys(self, beside: Collection[Address] = ()) -> None:
        """Log the accounts whose keys this process lacks and whose transactions are not final.

        It has those `beside`.

        Nobody else watches them. A start with the former key goes on with them.
        """
        for former in await self._outbox.load_other_senders(self.address):
            if former not in beside:
                log.error(
                    "transactions of a former key wait for it", former=former, present=self.address
                )

    async def run_once(self) -> int:
        """Watch once, and return how many transactions are still unfinished."""
        return await self._watcher.run_once()

    async def _known(self, tx: OutgoingTx) -> SentTx | None:
        known = await self._outbox.load(tx.tx_id)
        if known is not None:
            known.check_same(tx)
        return known

    async def _simulate(self, tx: OutgoingTx) -> int:
        """Return the gas limit to sign; refuses a call that would revert."""
        call = await self._call(tx, SIMULATED_AT)
        if tx.gas is not None:
            return tx.gas
        answer = await self._rpc.call("eth_estimateGas", call, SIMULATED_AT)
        gas = quantity_of(answer, "eth_estimateGas")
        return gas + gas * GAS_MARGIN_PERCENT // 100

    async def _call(self, tx: OutgoingTx, at: str) -> dict[str, str]:
        """Have the node run a call, and return the request."""
        call = await self._request(tx)
        await self._rpc.call("eth_call", call, at)
        return call

    async def _request(self, tx: OutgoingTx) -> dict[str, str]:
        """Return the call of a transaction.

        Without stated gas it never has a price: a node would want the account to pay for the most that it
        gives to any call.
        """
        call = {"from": self.address, "to": tx.target, "data": "0x" + tx.calldata.hex()}
        if tx.gas is not None:
            call["gas"] = hex(tx.gas)
            if self._has_simulated_price:
                fees = await self._broadcaster.opening_fees()
                call["maxFeePerGas"] = hex(fees.max_fee_wei)
                call["maxPriorityFeePerGas"] = hex(fees.priority_fee_wei)
        return call
