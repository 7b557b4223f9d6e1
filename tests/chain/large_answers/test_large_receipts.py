"""Batches of reads whose answers are too large together, such as the receipts of transactions with many logs."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from tests.chain.large_answers.spam import BYTES_MAX, SPAM_GAS, SPAMMER, make_spammer, small_rpc
from tests.chain.sending import OPTIONS, stored
from tests.rigs.clock import Clock
from tests.rigs.sandbox import Sandbox
from typing_extensions import override

from foretell.chain.rpc import CALLS_PER_BATCH_MAX, Rpc
from foretell.chain.sender import Sender
from foretell.chain.smaller_reads import BatchReader
from foretell.domain.errors.chain import AnswerTooLarge, ChainUnavailable, RpcRefused
from foretell.domain.evm.transaction import OutgoingTx, TxStatus
from foretell.store.outbox.transactions import TxOutbox

pytestmark = pytest.mark.anyio

TXS = 5


class BoundedRpc(Rpc):
    """A connection to a node that gives so many answers at once, and otherwise fails in its own way."""

    def __init__(self, calls_max: int, failure: Exception) -> None:
        super().__init__("http://127.0.0.1:1")
        self.calls_max, self.failure = calls_max, failure
        self.asked: list[int] = []

    @override
    async def batch_as(self, kind: Any, calls: Sequence[tuple[str, Sequence[object]]]) -> list[Any]:
        self.asked.append(len(calls))
        if len(calls) > self.calls_max:
            raise self.failure
        return [params[0] for _, params in calls]


TOO_LARGE = AnswerTooLarge("batch", BYTES_MAX)
REFUSED = RpcRefused("eth_getTransactionReceipt", -32003, "response too large")


def calls_of(count: int) -> list[tuple[str, Sequence[object]]]:
    return [("eth_getTransactionReceipt", [number]) for number in range(count)]


@pytest.fixture
async def rpc(still_sandbox: Sandbox) -> AsyncIterator[Rpc]:
    async with small_rpc(still_sandbox.rpc_url) as rpc:
        yield rpc


async def test_attack_h1_transactions_confirm_whose_receipts_are_too_large_together(
    rpc: Rpc, still_sandbox: Sandbox, outbox: TxOutbox, clock: Clock
) -> None:
    await make_spammer(still_sandbox)

    def a_sender() -> Sender:
        key = still_sandbox.trader().private_key
        return Sender(rpc, key, outbox, OPTIONS, clock.now_ms)

    sender, ids = a_sender(), [f"spam-{number}" for number in range(TXS)]
    for tx_id in ids:
        await sender.send(OutgoingTx(tx_id, SPAMMER, b"", SPAM_GAS))
    await still_sandbox.mine()
    hashes = [(await stored(outbox, tx_id)).newest.tx_hash for tx_id in ids]
    with pytest.raises(ChainUnavailable, match=f"more than {BYTES_MAX} bytes"):
        await rpc.batch([("eth_getTransactionReceipt", [tx_hash]) for tx_hash in hashes])
    assert await sender.run_once() == TXS
    assert {(await stored(outbox, tx_id)).status for tx_id in ids} == {TxStatus.MINED}
    await still_sandbox.mine()
    assert await a_sender().run_once() == 0
    assert {(await stored(outbox, tx_id)).status for tx_id in ids} == {TxStatus.CONFIRMED}


@pytest.mark.parametrize("failure", [TOO_LARGE, REFUSED])
@pytest.mark.parametrize("calls_max", [1, 3, 99])
@pytest.mark.parametrize("count", [1, 2, 250])
async def test_a_batch_is_halved_until_its_answers_fit(
    failure: Exception, calls_max: int, count: int
) -> None:
    rpc = BoundedRpc(calls_max, failure)
    assert await BatchReader(rpc).read(int, calls_of(count), list) == list(range(count))
    failed = [size for size in rpc.asked if size > calls_max]
    assert len(failed) <= CALLS_PER_BATCH_MAX.bit_length()
    assert rpc.asked[: len(failed)] == failed


async def test_one_answer_that_is_too_large_is_not_asked_for_again() -> None:
    rpc = BoundedRpc(0, TOO_LARGE)
    with pytest.raises(AnswerTooLarge):
        await BatchReader(rpc).read(int, calls_of(2), list)
    assert rpc.asked == [2, 1]


async def test_a_batch_that_is_not_answered_is_half_as_large_in_the_next_read() -> None:
    rpc = BoundedRpc(60, ChainUnavailable("batch", "SocketTimeoutError"))
    reader = BatchReader(rpc)
    with pytest.raises(ChainUnavailable, match="SocketTimeoutError"):
        await reader.read(int, calls_of(100), list)
    assert await reader.read(int, calls_of(100), list) == list(range(100))
    assert rpc.asked == [100, 50, 50]


async def test_a_silent_node_is_asked_once_in_each_read() -> None:
    rpc = BoundedRpc(0, ChainUnavailable("batch", "cable"))
    reader = BatchReader(rpc)
    for _ in range(9):
        with pytest.raises(ChainUnavailable, match="cable"):
            await reader.read(int, calls_of(100), list)
    assert rpc.asked == [100, 50, 25, 12, 6, 3, 1, 1, 1]


async def test_batches_grow_again_after_large_answers() -> None:
    rpc = BoundedRpc(CALLS_PER_BATCH_MAX, TOO_LARGE)
    reader = BatchReader(rpc)
    await reader.read(int, calls_of(250), list)
    assert rpc.asked == [100, 100, 50]
    rpc.calls_max = 30
    await reader.read(int, calls_of(100), list)
    rpc.calls_max, rpc.asked = CALLS_PER_BATCH_MAX, []
    for _ in range(4):
        await reader.read(int, calls_of(100), list)
    assert rpc.asked == [25, 25, 25, 25, 50, 50, 100, 100]


async def test_of_each_batch_only_what_is_kept_is_returned() -> None:
    def even(numbers: Sequence[int | None]) -> list[int]:
        return [number for number in numbers if number is not None and number % 2 == 0]

    read = await BatchReader(BoundedRpc(2, TOO_LARGE)).read(int, calls_of(9), even)
    assert read == [0, 2, 4, 6, 8]
