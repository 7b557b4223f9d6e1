"""Signs, stores and broadcasts the attempts of one account's transactions.

An attempt is stored before it is broadcast. All of it runs under the account's lock, so that a
nonce is given out once and an attempt replaced once.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from foretell.chain.fees import fetch_fees
from foretell.chain.outbox import Outbox
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of
from foretell.domain.errors.chain import ChainUnavailable, NonceContended, RpcRefused, WrongChain
from foretell.domain.evm.broadcast import BroadcastAnswer, meaning_of_refusal
from foretell.domain.evm.raw_transaction import Fees, TxFields, sign_tx
from foretell.domain.evm.transaction import (
    OutgoingTx,
    SentTx,
    TxAttempt,
    TxMove,
    TxStatus,
    TxTrigger,
    bumped_fees,
    moved,
)
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Bytes32

NOOP_GAS: Final = 21_000
RESERVE_ATTEMPTS_MAX: Final = 10
ATTEMPTS_MAX: Final = 10
"""What no block has taken at so many prices is given up."""

FEE_CAP_WEI: Final = 1_000_000_000_000

_log: Final = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SenderOptions:
    """How an account sends; `confirmations` counts blocks on top of a transaction's own."""

    chain_id: int
    confirmations: int = 1
    fee_cap_wei: int = FEE_CAP_WEI


class Broadcaster:
    """The hand of one account."""

    def __init__(
        self,
        rpc: Rpc,
        private_key: bytes,
        outbox: Outbox,
        options: SenderOptions,
        now_ms: Callable[[], int],
    ) -> None:
        self.rpc = rpc
        self.outbox = outbox
        self.options = options
        self.now_ms = now_ms
        self.address = address_of_key(private_key)
        self.lock = asyncio.Lock()
        self.taken_at_ms: dict[Bytes32, int] = {}
        """When a node first took an attempt from this process."""
        self._private_key = private_key
        self._is_chain_checked = False

    async def check_chain(self) -> None:
        """Refuse a node of another chain, once for each sender."""
        if not self._is_chain_checked:
            seen = quantity_of(await self.rpc.call("eth_chainId"), "eth_chainId")
            if seen != self.options.chain_id:
                raise WrongChain(seen, self.options.chain_id)
            self._is_chain_checked = True

    async def fetch_nonce(self, at: str) -> int:
        """Return how many nonces of the account are used, `latest` or `pending`."""
        answer = await self.rpc.call("eth_getTransactionCount", self.address, at)
        return quantity_of(answer, "eth_getTransactionCount")

    async def reserve(self, tx: OutgoingTx, gas: int) -> SentTx:
        """Return the transaction with a nonce that is its own from now on, signed and stored."""
        fees = await fetch_fees(self.rpc, self.options.fee_cap_wei)
        for _ in range(RESERVE_ATTEMPTS_MAX):
            last = await self.outbox.load_last_nonce(self.address)
            nonce = await self.fetch_nonce("pending")
            sent = self._signed(tx, gas, fees, nonce if last is None else max(nonce, last + 1))
            if await self.outbox.record_new(sent):
                return sent
            if (known := await self.outbox.load(tx.tx_id)) is not None:
                known.check_same(tx)
                return known
        raise NonceContended(self.address, RESERVE_ATTEMPTS_MAX)

    async def fill_gap(self, account_nonce: int) -> None:
        """Use up a nonce that nothing of ours has and that no node knows of any more."""
        tx = OutgoingTx(f"gap:{self.address}:{account_nonce}", self.address, b"")
        fees = await fetch_fees(self.rpc, self.options.fee_cap_wei)
        sent = self._signed(tx, NOOP_GAS, fees, account_nonce)
        if await self.outbox.record_new(sent):
            await self.push(sent)

    def _signed(self, tx: OutgoingTx, gas: int, fees: Fees, account_nonce: int) -> SentTx:
        fields = TxFields(self.options.chain_id, account_nonce, fees, gas, tx.target, tx.calldata)
        now_ms = self.now_ms()
        return SentTx(
            tx_id=tx.tx_id,
            sender=self.address,
            account_nonce=account_nonce,
            target=tx.target,
            calldata=tx.calldata,
            gas=gas,
            status=TxStatus.PENDING,
            attempts=(self._attempt(fields, now_ms),),
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )

    def _attempt(self, fields: TxFields, now_ms: int) -> TxAttempt:
        signed = sign_tx(fields, self._private_key)
        return TxAttempt(signed.tx_hash, signed.raw, fields.fees, now_ms)

    async def push(self, tx: SentTx) -> SentTx:
        """Broadcast the newest attempt, and another in its place at once when the node wants one."""
        answer, words = await self.broadcast(tx)
        if answer is BroadcastAnswer.FEE_TOO_LOW and (raised := await self._bumped(tx)):
            tx = raised
            answer, words = await self.broadcast(tx)
        if answer is BroadcastAnswer.REFUSED and not tx.is_given_up:
            tx = await self._given_up(tx, words)
            answer, words = await self.broadcast(tx)
        if answer is not BroadcastAnswer.TAKEN:
            _log.warning("not taken", tx_id=tx.tx_id, answer=answer.value, words=words)
        elif tx.status is TxStatus.PENDING:
            tx = await self.move(tx, TxMove(TxTrigger.ACCEPT)) or tx
        return tx

    async def broadcast(self, tx: SentTx) -> tuple[BroadcastAnswer, str]:
        """Return what became of broadcasting the newest attempt, and the node's words."""
        attempt = tx.newest
        try:
            await self.rpc.send("eth_sendRawTransaction", "0x" + attempt.raw.hex())
            answer, words = BroadcastAnswer.TAKEN, ""
        except RpcRefused as refusal:
            words = refusal.rpc_message
            answer = meaning_of_refusal(words)
        except ChainUnavailable as error:
            answer, words = BroadcastAnswer.UNCERTAIN, error.message
        if answer is BroadcastAnswer.TAKEN:
            self.taken_at_ms.setdefault(attempt.tx_hash, self.now_ms())
        return answer, words

    async def bump(self, tx: SentTx) -> SentTx:
        """Replace an attempt that waits too long by a dearer one, within the cap."""
        if len(tx.attempts) >= ATTEMPTS_MAX and not tx.is_given_up:
            words = f"in no block after {len(tx.attempts)} attempts"
            return await self.push(await self._given_up(tx, words))
        return await self.push(await self._bumped(tx) or tx)

    async def _bumped(self, tx: SentTx) -> SentTx | None:
        cap_wei = self.options.fee_cap_wei
        market = await fetch_fees(self.rpc, cap_wei)
        fees = bumped_fees(tx.newest.fees, market, cap_wei)
        if fees is None:
            _log.error("fee cap reached", tx_id=tx.tx_id, cap_wei=cap_wei)
            return None
        return await self._replaced(tx, self._fields(tx, fees, is_noop=tx.is_given_up))

    async def _given_up(self, tx: SentTx, words: str) -> SentTx:
        """Return the transaction with an attempt that only uses up its nonce.

        The bytes before it can never pass, and what waits behind them must not wait for ever.
        """
        last = tx.newest.fees
        fees = bumped_fees(last, last, self.options.fee_cap_wei) or last
        return await self._replaced(tx, self._fields(tx, fees, is_noop=True), words)

    def _fields(self, tx: SentTx, fees: Fees, *, is_noop: bool) -> TxFields:
        chain_id, nonce = self.options.chain_id, tx.account_nonce
        if is_noop:
            return TxFields(chain_id, nonce, fees, NOOP_GAS, self.address, b"")
        return TxFields(chain_id, nonce, fees, tx.gas, tx.target, tx.calldata)

    async def _replaced(self, tx: SentTx, fields: TxFields, words: str | None = None) -> SentTx:
        replaced = tx.with_attempt(self._attempt(fields, self.now_ms()), words)
        await self.outbox.record_attempt(replaced)
        return replaced

    async def move(self, tx: SentTx, step: TxMove) -> SentTx | None:
        """Return the transaction after a step that is stored, or None when somebody moved it."""
        now = moved(tx, step, self.now_ms())
        return now if await self.outbox.record_move(tx, now) else None
