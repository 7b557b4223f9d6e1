from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest
from structlog.testing import capture_logs
from tests.chain.sending import (
    OPTIONS,
    Approving,
    MakeSender,
    allowed,
    set_base_fee,
    stored,
    used_nonces,
)
from tests.rigs.clock import Clock
from tests.rigs.fault_proxy import (
    BROADCAST,
    Answer,
    Fault,
    FaultProxy,
    Forward,
    Request,
    change,
    lose_request,
    refuse,
    refuse_after,
)
from tests.rigs.sandbox import Sandbox
from typing_extensions import override

from foretell.chain.broadcaster import ATTEMPTS_MAX
from foretell.chain.sender import Sender
from foretell.chain.sending_account import RETRY_AFTER_S_MAX
from foretell.domain.errors.chain import NonceContended
from foretell.domain.evm.transaction import SentTx, TxStatus
from foretell.store.database import Database
from foretell.store.outbox.transactions import SETTLEMENT, TxOutbox

pytestmark = pytest.mark.anyio


async def test_a_sender_that_finds_every_nonce_taken_gives_up_without_a_broadcast(
    make_sender: MakeSender,
    approving: Approving,
    outbox: TxOutbox,
    proxy: FaultProxy,
    database: Database,
) -> None:
    class Rivals(TxOutbox):
        """Rows where another process always takes the nonce first."""

        @override
        async def record_new(self, new: SentTx) -> bool:
            rival = replace(new, tx_id=f"rival-{new.account_nonce}")
            assert await outbox.record_new(rival)
            return await outbox.record_new(new)

    sender = make_sender(outbox=Rivals(database, SETTLEMENT))
    with pytest.raises(NonceContended):
        await sender.send(approving())
    assert await outbox.load("approve-1") is None
    assert proxy.asked[BROADCAST] == 0


@pytest.mark.case("D-03")
@pytest.mark.parametrize(
    "words",
    [
        "already known",
        "nonce too low: next nonce 9, tx nonce 8",
        "internal error",
        "INTERNAL_ERROR: existing tx with same hash",
    ],
)
async def test_a_broadcast_that_arrived_is_not_repeated_whatever_the_node_answered(
    sender: Sender, approving: Approving, outbox: TxOutbox, proxy: FaultProxy, words: str
) -> None:
    proxy.fail(BROADCAST, refuse_after(words))
    sent = await sender.send(approving())
    assert sent.status in {TxStatus.PENDING, TxStatus.SENT}
    await sender.run_once()
    mined = await stored(outbox)
    assert (mined.status, mined.attempts) == (TxStatus.MINED, sent.attempts)
    assert proxy.asked[BROADCAST] == 1


async def test_a_transaction_that_nodes_refuse_is_replaced_so_that_later_nonces_proceed(
    sender: Sender,
    approving: Approving,
    fresh_sandbox: Sandbox,
    outbox: TxOutbox,
    proxy: FaultProxy,
) -> None:
    proxy.fail(BROADCAST, refuse("exceeds block gas limit"))
    given_up = await sender.send(approving())
    assert given_up.is_given_up
    assert given_up.failure == "exceeds block gas limit"
    after = await sender.send(approving("approve-2", units=9))
    assert after.account_nonce == given_up.account_nonce + 1
    await sender.run_once()
    await fresh_sandbox.mine()
    assert await sender.run_once() == 0
    canceled = await stored(outbox)
    assert canceled.status is TxStatus.CANCELED
    assert canceled.failure == given_up.failure
    assert (await stored(outbox, "approve-2")).status is TxStatus.CONFIRMED
    assert await allowed(fresh_sandbox) == 9
    assert (await sender.send(approving())).status is TxStatus.CANCELED


@pytest.mark.case("D-06")
async def test_a_transaction_that_no_block_includes_is_given_up(
    sender: Sender, approving: Approving, still_sandbox: Sandbox, outbox: TxOutbox, clock: Clock
) -> None:
    sent = await sender.send(approving())
    for _ in range(ATTEMPTS_MAX):
        assert not (await stored(outbox)).is_given_up
        clock.move_s(20)
        await sender.run_once()
    await still_sandbox.mine(2)
    assert await sender.run_once() == 0
    canceled = await stored(outbox)
    assert canceled.status is TxStatus.CANCELED
    assert canceled.failure == "in no block after 10 attempts"
    assert await allowed(still_sandbox) == 0
    assert await used_nonces(still_sandbox) == sent.account_nonce + 1


async def test_the_first_attempt_counts_when_it_is_mined_after_all(
    sender: Sender,
    approving: Approving,
    still_sandbox: Sandbox,
    outbox: TxOutbox,
    proxy: FaultProxy,
) -> None:
    proxy.fail(BROADCAST, refuse_after("oversized data"), lose_request)
    given_up = await sender.send(approving())
    assert len(given_up.attempts) == 2
    await still_sandbox.mine()
    await sender.run_once()
    mined = await stored(outbox)
    assert mined.status is TxStatus.MINED
    assert mined.mined_hash == given_up.attempts[0].tx_hash
    assert mined.failure is None


def lower(history: dict[str, object]) -> dict[str, object]:
    return history | {"baseFeePerGas": ["0x1"], "reward": [["0x0"]]}


@pytest.mark.case("D-06")
async def test_fees_that_the_node_finds_too_low_are_raised_at_once(
    sender: Sender,
    approving: Approving,
    fresh_sandbox: Sandbox,
    outbox: TxOutbox,
    proxy: FaultProxy,
) -> None:
    await set_base_fee(fresh_sandbox, 10**10)
    proxy.fail("eth_feeHistory", change(lower))
    proxy.fail("eth_maxPriorityFeePerGas", change(lambda _: "0x1"))
    sent = await sender.send(approving())
    assert sent.status is TxStatus.SENT
    assert len(sent.attempts) == 2
    first, second = sent.attempts
    assert 8 * second.fees.max_fee_wei >= 9 * first.fees.max_fee_wei
    await sender.run_once()
    assert (await stored(outbox)).mined_hash == second.tx_hash


@pytest.mark.case("D-07")
async def test_a_node_that_finds_every_fee_too_low_raises_it_a_limited_number_of_times(
    sender: Sender,
    approving: Approving,
    outbox: TxOutbox,
    proxy: FaultProxy,
    clock: Clock,
) -> None:
    """Otherwise it would raise the fee to its cap, and be paid that once it takes the transaction."""
    proxy.fail_always(BROADCAST, refuse("replacement transaction underpriced"))
    first = await sender.send(approving())
    for _ in range(60):
        clock.move_s(1)
        await sender.run_once()
    dear = await stored(outbox)
    assert len(dear.attempts) == 20
    assert dear.newest.fees.priority_fee_wei < 11 * first.attempts[0].fees.priority_fee_wei
    proxy.heal()
    clock.move_s(RETRY_AFTER_S_MAX)
    await sender.run_once()
    await sender.run_once()
    assert (await stored(outbox)).status is TxStatus.MINED


@pytest.mark.case("D-06")
async def test_a_transaction_at_the_fee_cap_waits_for_lower_fees(
    make_sender: MakeSender,
    approving: Approving,
    fresh_sandbox: Sandbox,
    outbox: TxOutbox,
    clock: Clock,
) -> None:
    await set_base_fee(fresh_sandbox, 10**10)
    cap_wei = 100_000
    sender = make_sender(replace(OPTIONS, fee_cap_wei=cap_wei))
    sent = await sender.send(approving())
    assert sent.status is TxStatus.PENDING
    assert sent.newest.fees.max_fee_wei == cap_wei
    await sender.run_once()
    assert len((await stored(outbox)).attempts) == 1
    await set_base_fee(fresh_sandbox, 16)
    clock.move_s(2)
    await sender.run_once()
    await sender.run_once()
    mined = await stored(outbox)
    assert mined.status is TxStatus.MINED
    assert mined.mined_hash == sent.newest.tx_hash


LACKS_FUNDS: Final = "insufficient funds for gas * price + value: have 0 want 63000"
STRANGE: Final = "the moon is not full"


@pytest.mark.case("D-07")
@pytest.mark.parametrize("case", [(LACKS_FUNDS, 600), (STRANGE, 120)], ids=["funds", "strange"])
async def test_what_a_node_refuses_is_repeated_ever_more_rarely_and_in_a_line_a_minute(
    sender: Sender,
    approving: Approving,
    outbox: TxOutbox,
    proxy: FaultProxy,
    clock: Clock,
    case: tuple[str, int],
) -> None:
    words, seconds = case
    proxy.fail_always(BROADCAST, refuse(words))
    with capture_logs() as logs:
        await sender.send(approving())
        for _ in range(seconds):
            clock.move_s(1)
            await sender.run_once()
    assert seconds // 30 <= proxy.asked[BROADCAST] <= 10 + seconds // 30
    lines = [each for each in logs if each["event"] == "broadcast not accepted"]
    assert seconds // 60 <= len(lines) <= 1 + seconds // 60
    assert sum(each["count"] for each in lines) >= proxy.asked[BROADCAST] - 2
    assert {each["cause"] for each in lines} == {words}
    assert all(each["cure"] for each in lines)
    proxy.heal()
    clock.move_s(RETRY_AFTER_S_MAX)
    await sender.run_once()
    assert (await stored(outbox)).status is TxStatus.SENT


async def test_refusals_of_many_transactions_are_one_cause_whatever_each_of_them_lacks(
    sender: Sender, approving: Approving, proxy: FaultProxy, clock: Clock
) -> None:
    numbers = iter(range(10**6))
    proxy.fail_always(BROADCAST, lack_another_sum(numbers))
    with capture_logs() as logs:
        await sender.send_all([approving(f"approve-{number}", gas=100_000) for number in range(28)])
        for _ in range(59):
            clock.move_s(1)
            await sender.run_once()
        clock.move_s(30)
        await sender.run_once()
    counts = [each["count"] for each in logs if each["event"] == "broadcast not accepted"]
    assert len(counts) == 2
    assert counts[1] > 28 * 5


def lack_another_sum(numbers: Iterator[int]) -> Fault:
    """The node refuses each broadcast with another number in its words."""

    async def fault(request: Request, forward: Forward) -> Answer | None:
        return await refuse(f"insufficient funds: {next(numbers)}")(request, forward)

    return fault


@pytest.mark.case("D-06")
async def test_a_replacement_that_the_cap_forbids_is_tried_ever_more_rarely(
    make_sender: MakeSender,
    approving: Approving,
    still_sandbox: Sandbox,
    outbox: TxOutbox,
    proxy: FaultProxy,
    clock: Clock,
) -> None:
    await make_sender().send(approving())
    cap_wei = (await stored(outbox)).newest.fees.max_fee_wei
    sender = make_sender(replace(OPTIONS, fee_cap_wei=cap_wei))
    await sender.run_once()
    asked = proxy.asked["eth_feeHistory"]
    with capture_logs() as logs:
        for _ in range(100):
            clock.move_s(1)
            await sender.run_once()
    assert 3 <= proxy.asked["eth_feeHistory"] - asked <= 10
    assert len([each for each in logs if each["event"] == "fee cap reached"]) == 2
    assert len((await stored(outbox)).attempts) == 1
    await still_sandbox.mine()
    await sender.run_once()
    assert (await stored(outbox)).status is TxStatus.MINED
