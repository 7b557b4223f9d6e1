"""Sign, store and broadcast the attempts of one account's transactions.

An attempt is stored before it is broadcast. All of it runs under the account's lock, so that a
nonce is reserved once and an attempt replaced once.
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from foretell.chain.fees import OpeningFees, fetch_fees
from foretell.chain.sending_account import SendingAccount
from foretell.chain.unknown_nonces import FreeNonces
from foretell.domain.errors.chain import ChainUnavailable, NonceContended, RpcRefused
from foretell.domain.evm.broadcast import BroadcastResult, result_of_refusal
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

NOOP_GAS: Final = 21_000
RESERVE_ATTEMPTS_MAX: Final = 10
ATTEMPTS_MAX: Final = 10
"""A transaction that no block includes after this many attempts is given up."""
ATTEMPTS_AT_ONCE_MAX: Final = 2 * ATTEMPTS_MAX
"""A node that finds every fee too low gets no higher ones after this many attempts."""

REPLACED_PREFIX: Final = "unknown:"
"""Ids of empty transactions in the place of unknown ones."""

BROADCASTS_PER_REQUEST_MAX: Final = 10
"""Batches of trades have up to 170 KiB each, and nodes take requests of a few MiB."""

_ANOTHER_NODE: Final = (
    "later nonces of the account wait for it: if this lasts, use another node (FORETELL_RPC_URL)"
)
CURES: Final = MappingProxyType(
    {
        BroadcastResult.NONCE_USED: "none is needed, if no other program sends from the account: a block shows what has the nonce",
        BroadcastResult.FEE_TOO_LOW: "wait: the fees rise with the chain's, up to the cap",
        BroadcastResult.LATER: "send the account coin if it lacks funds; room and earlier nonces come by themselves",
        BroadcastResult.REFUSED: f"it is replaced by an empty one, and that is not taken; {_ANOTHER_NODE}",
        BroadcastResult.UNCERTAIN: f"it is sent again; {_ANOTHER_NODE}",
    }
)
"""The cures in the log, by the result of a broadcast."""
CAP_CURE: Final = "wait until the chain's fees fall: it is tried again"


class Broadcaster:
    """The signing side of one account."""

    def __init__(self, account: SendingAccount, private_key: bytes) -> None:
        self._account = account
        self._private_key = private_key
        self._free = FreeNonces(account)
        self._opening = OpeningFees(account.rpc, account.options.fee_cap_wei, account.now_ms)

    async def reserve(self, tx: OutgoingTx, gas: int) -> SentTx:
        """Return the transaction with a reserved nonce, signed and stored but not broadcast."""
        account = self._account
        fees = await self._opening.current()
        for _ in range(RESERVE_ATTEMPTS_MAX):
            sent = self._signed(tx, gas, fees, await self._free.first())
            if await account.outbox.record_new(sent):
                return sent
            if (known := await account.outbox.load(tx.tx_id)) is not None:
                known.check_same(tx)
                return known
        raise NonceContended(account.address, RESERVE_ATTEMPTS_MAX)

    async def reserve_all(self, txs: Sequence[tuple[OutgoingTx, int]]) -> Sequence[SentTx]:
        """Return transactions with their gas as `reserve` does, with nonces in their order.

        They are stored together; where another process took one of the nonces, one by one.
        """
        fees, first = await self._opening.current(), await self._free.first()
        signed = [self._signed(*tx, fees, nonce) for nonce, tx in enumerate(txs, first)]
        if await self._account.outbox.record_all_new(signed):
            return signed
        return [await self.reserve(*tx) for tx in txs]

    async def opening_fees(self) -> Fees:
        """Return the fees of a first attempt now."""
        return await self._opening.current()

    async def fill_gap(self, account_nonce: int) -> None:
        """Use up a nonce that no transaction in the outbox has and no node knows."""
        await self._use_up(f"gap:{self._account.address}:{account_nonce}", account_nonce)

    async def replace_unknown(self, account_nonce: int) -> None:
        """Use up a nonce of a transaction that a node has and the outbox does not.

        The watcher raises the fees until a block has the nonce, for either of the two.
        """
        tx_id = f"{REPLACED_PREFIX}{self._account.address}:{account_nonce}"
        await self._use_up(tx_id, account_nonce)

    async def _use_up(self, tx_id: str, account_nonce: int) -> None:
        account = self._account
        fees = await fetch_fees(account.rpc, account.options.fee_cap_wei)
        tx = OutgoingTx(tx_id, account.address, b"")
        sent = self._signed(tx, NOOP_GAS, fees, account_nonce)
        if await account.outbox.record_new(sent):
            await self.push(sent)

    def _signed(self, tx: OutgoingTx, gas: int, fees: Fees, account_nonce: int) -> SentTx:
        chain_id = self._account.options.chain_id
        fields = TxFields(chain_id, account_nonce, fees, gas, tx.target, tx.calldata)
        now_ms = self._account.now_ms()
        return SentTx(
            tx_id=tx.tx_id,
            sender=self._account.address,
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
        """Broadcast the newest attempt, and replace it at once when the node asks for that."""
        result, words = await self.broadcast(tx)
        if result is BroadcastResult.FEE_TOO_LOW and (raised := await self._raised(tx)):
            tx = raised
            result, words = await self.broadcast(tx)
        if result is BroadcastResult.REFUSED and not tx.is_given_up:
            tx = await self._given_up(tx, words)
            result, words = await self.broadcast(tx)
        if result is not BroadcastResult.ACCEPTED:
            self._log_refused(tx, result, words)
        elif tx.status is TxStatus.PENDING:
            tx = await self._account.move(tx, TxMove(TxTrigger.ACCEPT)) or tx
        return tx

    def _log_refused(self, tx: SentTx, result: BroadcastResult, words: str) -> None:
        self._account.lines.write_warning(
            "broadcast not accepted",
            words,
            CURES[result],
            result=result.value,
            tx_id=tx.tx_id,
            account=self._account.address,
            nonce=tx.account_nonce,
            since_s=(self._account.now_ms() - tx.created_at_ms) // 1000,
        )

    async def push_all(self, txs: Sequence[SentTx]) -> None:
        """Broadcast the newest attempts in as few requests as possible; see to those not accepted one by one."""
        for start in range(0, len(txs), BROADCASTS_PER_REQUEST_MAX):
            await self._push_together(txs[start : start + BROADCASTS_PER_REQUEST_MAX])

    async def _push_together(self, txs: Sequence[SentTx]) -> None:
        """Broadcast attempts in one request. Without its answer each may have arrived: the watcher repeats them."""
        sent = [("eth_sendRawTransaction", ["0x" + tx.newest.raw.hex()]) for tx in txs]
        try:
            answers = await self._account.rpc.send_all(sent)
        except ChainUnavailable as error:
            self._log_refused(txs[0], BroadcastResult.UNCERTAIN, error.message)
            return
        pairs = list(zip(txs, answers, strict=True))
        accepted = [tx for tx, answer in pairs if not isinstance(answer, RpcRefused)]
        for tx in accepted:
            self._account.times.record_accepted(tx.newest.tx_hash)
        now_ms, step = self._account.now_ms(), TxMove(TxTrigger.ACCEPT)
        await self._account.move_all([(tx, moved(tx, step, now_ms)) for tx in accepted])
        for tx, answer in pairs:
            if isinstance(answer, RpcRefused):
                await self.push(tx)

    async def broadcast(self, tx: SentTx) -> tuple[BroadcastResult, str]:
        """Return the result of broadcasting the newest attempt, and the node's words."""
        attempt = tx.newest
        try:
            await self._account.rpc.send("eth_sendRawTransaction", "0x" + attempt.raw.hex())
            result, words = BroadcastResult.ACCEPTED, ""
        except RpcRefused as refusal:
            words = refusal.rpc_message
            result = result_of_refusal(words)
        except ChainUnavailable as error:
            result, words = BroadcastResult.UNCERTAIN, error.message
        if result is BroadcastResult.ACCEPTED:
            self._account.times.record_accepted(attempt.tx_hash)
        return result, words

    async def bump(self, tx: SentTx) -> SentTx:
        """Replace an attempt that waits too long by one with higher fees, within the cap."""
        if len(tx.attempts) >= ATTEMPTS_MAX and not tx.is_given_up:
            words = f"in no block after {len(tx.attempts)} attempts"
            return await self.push(await self._given_up(tx, words))
        return await self.push(await self._bumped(tx) or tx)

    async def _raised(self, tx: SentTx) -> SentTx | None:
        """Return the transaction with the higher fees that a node asks for, a limited number of times.

        A node that lies would raise the tip, which is paid in full, up to the cap.
        """
        return await self._bumped(tx) if len(tx.attempts) < ATTEMPTS_AT_ONCE_MAX else None

    async def _bumped(self, tx: SentTx) -> SentTx | None:
        cap_wei = self._account.options.fee_cap_wei
        market = await fetch_fees(self._account.rpc, cap_wei)
        fees = bumped_fees(tx.newest.fees, market, cap_wei)
        if fees is None:
            self._account.lines.write_error(
                "fee cap reached", f"the cap is {cap_wei} wei", CAP_CURE, tx_id=tx.tx_id
            )
            return None
        return await self._replaced(tx, self._fields(tx, fees, is_noop=tx.is_given_up))

    async def _given_up(self, tx: SentTx, words: str) -> SentTx:
        """Return the transaction with an attempt that only uses up its nonce.

        No node accepts the bytes before it, and transactions with later nonces must not wait for them.
        """
        last = tx.newest.fees
        fees = bumped_fees(last, last, self._account.options.fee_cap_wei) or last
        return await self._replaced(tx, self._fields(tx, fees, is_noop=True), words)

    def _fields(self, tx: SentTx, fees: Fees, *, is_noop: bool) -> TxFields:
        chain_id, nonce = self._account.options.chain_id, tx.account_nonce
        if is_noop:
            return TxFields(chain_id, nonce, fees, NOOP_GAS, self._account.address, b"")
        return TxFields(chain_id, nonce, fees, tx.gas, tx.target, tx.calldata)

    async def _replaced(self, tx: SentTx, fields: TxFields, words: str | None = None) -> SentTx:
        replaced = tx.with_attempt(self._attempt(fields, self._account.now_ms()), words)
        await self._account.outbox.record_attempt(replaced)
        return replaced
