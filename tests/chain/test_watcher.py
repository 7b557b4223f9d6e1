from typing import Any, Final

import pytest
from structlog.testing import capture_logs
from tests.chain.sending import SPENDER, Approving, MakeSender, allowed, stored, used_nonces
from tests.rigs.clock import Clock
from tests.rigs.fault_proxy import (
    BROADCAST,
    Fault,
    FaultProxy,
    Forward,
    change,
    lose_answer,
    lose_request,
    refuse,
)
from tests.rigs.sandbox import Sandbox

from foretell.chain.sender import Sender
from foretell.chain.unknown_nonces import CONFIRMED_AFTER_S, NONCES_AHEAD_MAX
from foretell.domain.contracts.calldata import Approve
from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.evm.transaction import OutgoingTx, TxStatus
from foretell.domain.values.hexadecimal import Address
from foretell.store.outbox.transactions import TxOutbox

pytestmark = pytest.mark.anyio


async def test_a_lost_broadcast_is_repeated_with_the_same_bytes(
    sender: Sender, approving: Approving, outbox: TxOutbox, proxy: FaultProxy
) -> None:
    proxy.fail(BROADCAST, lose_request, refuse("Too Many Requests", -32005))
    sent = await sender.send(approving())
    assert sent.status is TxStatus.PENDING
    await sender.run_once()
    assert (await stored(outbox)).status is TxStatus.PENDING


async def test_a_transaction_of_a_process_that_died_before_its_broadcast_is_broadcast_by_the_next(
    make_sender: MakeSender,
    approving: Approving,
    outbox: TxOutbox,
    proxy: FaultProxy,
    fresh_sandbox: Sandbox,
) -> None:
    proxy.fail(BROADCAST, lose_request)
    sent = await make_sender().send(approving())
    assert sent.status is TxStatus.PENDING
    successor = make_sender()
    assert await successor.run_once() == 1
    assert (await stored(outbox)).status is TxStatus.SENT
    await successor.run_once()
    mined = await stored(outbox)
    assert (mined.status, mined.attempts) == (TxStatus.MINED, sent.attempts)
    assert await allowed(fresh_sandbox) == 7


@pytest.mark.case("D-02")
async def test_a_transaction_of_a_process_that_died_after_its_broadcast_is_found(
    make_sender: MakeSender, approving: Approving, outbox: TxOutbox, proxy: FaultProxy
) -> None:
    proxy.fail(BROADCAST, lose_answer)
    await make_sender().send(approving())
    successor = make_sender()
    assert (await successor.send(approving())).status is TxStatus.PENDING
    await successor.run_once()
    assert (await stored(outbox)).status is TxStatus.MINED
    assert proxy.asked[BROADCAST] == 1


async def test_a_call_that_fails_in_its_block_is_reverted_and_then_failed(
    sender: Sender, approving: Approving, still_sandbox: Sandbox, outbox: TxOutbox
) -> None:
    await sender.send(approving())
    # Between the simulation and the block the contract becomes one that always reverts.
    collateral = still_sandbox.deployment.collateral
    await still_sandbox.rpc.send("anvil_setCode", collateral, "0x60006000fd")
    await still_sandbox.mine()
    await sender.run_once()
    reverted = await stored(outbox)
    assert reverted.status is TxStatus.REVERTED
    assert reverted.failure == f"reverted in block {reverted.block_number}"
    await still_sandbox.mine()
    assert await sender.run_once() == 0
    assert (await stored(outbox)).status is TxStatus.FAILED


@pytest.mark.case("D-06")
async def test_a_stuck_attempt_is_replaced_by_one_with_higher_fees_and_the_same_nonce(
    sender: Sender,
    approving: Approving,
    still_sandbox: Sandbox,
    outbox: TxOutbox,
    clock: Clock,
) -> None:
    first = await sender.send(approving())
    behind = await sender.send(approving("approve-2", units=9))
    clock.move_s(19)
    await sender.run_once()
    assert len((await stored(outbox)).attempts) == 1
    clock.move_s(1)
    await sender.run_once()
    bumped = await stored(outbox)
    old, new = bumped.attempts
    assert bumped.account_nonce == first.account_nonce
    assert 8 * new.fees.max_fee_wei >= 9 * old.fees.max_fee_wei
    assert 8 * new.fees.priority_fee_wei >= 9 * old.fees.priority_fee_wei
    assert (await stored(outbox, "approve-2")).attempts == behind.attempts
    await still_sandbox.mine()
    await sender.run_once()
    assert (await stored(outbox)).mined_hash == new.tx_hash


async def test_an_older_attempt_may_be_the_one_that_is_mined(
    sender: Sender,
    approving: Approving,
    still_sandbox: Sandbox,
    outbox: TxOutbox,
    clock: Clock,
    proxy: FaultProxy,
) -> None:
    first = await sender.send(approving())
    clock.move_s(20)
    proxy.fail(BROADCAST, lose_request)
    await sender.run_once()
    assert len((await stored(outbox)).attempts) == 2
    await still_sandbox.mine(2)
    assert await sender.run_once() == 0
    confirmed = await stored(outbox)
    assert confirmed.status is TxStatus.CONFIRMED
    assert confirmed.mined_hash == first.newest.tx_hash


async def test_a_dropped_transaction_is_broadcast_again(
    sender: Sender,
    approving: Approving,
    still_sandbox: Sandbox,
    outbox: TxOutbox,
    clock: Clock,
) -> None:
    sent = await sender.send(approving())
    await still_sandbox.rpc.send("anvil_dropTransaction", sent.newest.tx_hash)
    clock.move_s(9)
    await sender.run_once()
    await still_sandbox.mine()
    assert await used_nonces(still_sandbox) == sent.account_nonce
    clock.move_s(1)
    await sender.run_once()
    await still_sandbox.mine()
    await sender.run_once()
    mined = await stored(outbox)
    assert (mined.status, mined.attempts) == (TxStatus.MINED, sent.attempts)


@pytest.mark.case("D-04")
async def test_what_the_node_has_lost_is_broadcast_again_and_its_fees_do_not_rise(
    sender: Sender,
    approving: Approving,
    still_sandbox: Sandbox,
    outbox: TxOutbox,
    clock: Clock,
) -> None:
    sent = await sender.send(approving())
    for _ in range(5):
        await still_sandbox.rpc.send("anvil_dropTransaction", sent.newest.tx_hash)
        clock.move_s(20)
        await sender.run_once()
    assert (await stored(outbox)).attempts == sent.attempts
    await still_sandbox.mine()
    await sender.run_once()
    assert (await stored(outbox)).mined_hash == sent.newest.tx_hash


@pytest.mark.case("D-06")
async def test_fees_rise_seldom_at_a_node_that_shows_no_waiting_transaction(
    sender: Sender,
    approving: Approving,
    still_sandbox: Sandbox,  # noqa: ARG001 - nothing is mined
    outbox: TxOutbox,
    clock: Clock,
    proxy: FaultProxy,
) -> None:
    proxy.fail_always("eth_getTransactionByHash", change(lambda _shown: None))
    await sender.send(approving())
    counts = []
    for _ in range(12):
        clock.move_s(20)
        await sender.run_once()
        counts.append(len((await stored(outbox)).attempts))
    assert counts == [1] * 5 + [2] * 6 + [3]


@pytest.mark.case("D-06")
async def test_fees_rise_at_a_node_that_does_not_show_which_transactions_it_has(
    sender: Sender,
    approving: Approving,
    still_sandbox: Sandbox,  # noqa: ARG001 - nothing is mined
    outbox: TxOutbox,
    clock: Clock,
    proxy: FaultProxy,
) -> None:
    proxy.fail_always("eth_getTransactionByHash", refuse("no such method", -32601))
    await sender.send(approving())
    clock.move_s(20)
    await sender.run_once()
    assert len((await stored(outbox)).attempts) == 2


@pytest.mark.case("D-08")
async def test_after_a_reorg_the_same_bytes_are_mined_again(
    sender: Sender, approving: Approving, fresh_sandbox: Sandbox, outbox: TxOutbox, clock: Clock
) -> None:
    snapshot = await fresh_sandbox.rpc.send("evm_snapshot")
    sent = await sender.send(approving())
    await sender.run_once()
    assert (await stored(outbox)).status is TxStatus.MINED
    clock.move_s(60)
    await fresh_sandbox.rpc.send("evm_revert", snapshot)
    assert await allowed(fresh_sandbox) == 0
    await sender.run_once()
    unmined = await stored(outbox)
    assert (unmined.status, unmined.block_number) == (TxStatus.SENT, None)
    await sender.run_once()
    mined = await stored(outbox)
    assert (mined.status, mined.attempts) == (TxStatus.MINED, sent.attempts)
    assert await allowed(fresh_sandbox) == 7


async def test_a_receipt_that_vanishes_for_a_moment_changes_nothing_in_the_end(
    sender: Sender,
    approving: Approving,
    fresh_sandbox: Sandbox,
    outbox: TxOutbox,
    proxy: FaultProxy,
) -> None:
    await sender.send(approving())
    await sender.run_once()
    proxy.fail("eth_getTransactionReceipt", change(lambda _: None))
    await fresh_sandbox.mine(5)
    await sender.run_once()
    assert (await stored(outbox)).status is TxStatus.SENT
    assert await sender.run_once() == 0
    confirmed = await stored(outbox)
    assert (confirmed.status, len(confirmed.attempts)) == (TxStatus.CONFIRMED, 1)


@pytest.mark.case("D-07")
async def test_a_receipt_of_another_transaction_counts_as_no_answer(
    sender: Sender, approving: Approving, outbox: TxOutbox, proxy: FaultProxy
) -> None:
    await sender.send(approving())
    other = "0x" + "0e" * 32
    proxy.fail("eth_getTransactionReceipt", change(lambda real: real | {"transactionHash": other}))
    with pytest.raises(ChainInconsistent, match="another transaction"):
        await sender.run_once()
    assert (await stored(outbox)).status is TxStatus.SENT
    await sender.run_once()
    assert (await stored(outbox)).status is TxStatus.MINED


@pytest.mark.case("D-05")
async def test_a_nonce_used_elsewhere_cancels_its_transaction_and_the_next_nonce_follows_it(
    sender: Sender,
    approving: Approving,
    fresh_sandbox: Sandbox,
    outbox: TxOutbox,
    proxy: FaultProxy,
) -> None:
    proxy.fail(BROADCAST, lose_request, lose_request)
    lost = await sender.send(approving())
    elsewhere = Approve(SPENDER, 1).encode()
    trader = fresh_sandbox.trader()
    await fresh_sandbox.call(trader, fresh_sandbox.deployment.collateral, elsewhere)
    assert await used_nonces(fresh_sandbox) == lost.account_nonce + 1
    assert await sender.run_once() == 1
    assert (await stored(outbox)).status is TxStatus.PENDING
    await fresh_sandbox.mine()
    await sender.run_once()
    canceled = await stored(outbox)
    assert canceled.status is TxStatus.CANCELED
    assert (
        canceled.failure == f"nonce {lost.account_nonce} of the account was used by something else"
    )
    assert (await sender.send(approving("approve-2"))).account_nonce == lost.account_nonce + 1


async def forget_states(request: dict[str, Any], forward: Forward) -> dict[str, Any] | None:
    """The node has no state but that of its last block."""
    if request["params"][1] in {"latest", "pending"}:
        return await forward()
    return await refuse("missing trie node")(request, forward)


@pytest.mark.parametrize("has_states", [True, False])
async def test_a_used_nonce_cancels_only_once_its_transaction_is_found_in_a_block(
    sender: Sender,
    approving: Approving,
    fresh_sandbox: Sandbox,
    outbox: TxOutbox,
    proxy: FaultProxy,
    *,
    has_states: bool,
) -> None:
    proxy.fail(BROADCAST, *[lose_request] * 9)
    proxy.fail_always("eth_getBlockByNumber", change(lambda _: None))
    await sender.send(approving())
    elsewhere = Approve(SPENDER, 1).encode()
    trader = fresh_sandbox.trader()
    await fresh_sandbox.call(trader, fresh_sandbox.deployment.collateral, elsewhere)
    await fresh_sandbox.mine(3)
    for _ in range(3):
        await sender.run_once()
        assert (await stored(outbox)).status is TxStatus.PENDING
        await fresh_sandbox.mine(2)
    proxy.heal()
    if not has_states:
        proxy.fail_always("eth_getTransactionCount", forget_states)
    await fresh_sandbox.mine(8)
    await sender.run_once()
    assert (await stored(outbox)).status is TxStatus.CANCELED


async def test_hidden_receipts_cancel_nothing(
    sender: Sender,
    approving: Approving,
    fresh_sandbox: Sandbox,
    outbox: TxOutbox,
    proxy: FaultProxy,
) -> None:
    proxy.fail_always("eth_getTransactionReceipt", change(lambda _: None))
    await sender.send(approving())
    await sender.run_once()
    await fresh_sandbox.mine(5)
    await sender.run_once()
    assert (await stored(outbox)).status is TxStatus.SENT
    proxy.heal()
    assert await sender.run_once() == 0
    assert (await stored(outbox)).status is TxStatus.CONFIRMED


@pytest.mark.case("D-07")
async def test_a_node_that_hides_mined_transactions_cancels_none_of_them(
    sender: Sender,
    approving: Approving,
    fresh_sandbox: Sandbox,
    outbox: TxOutbox,
    proxy: FaultProxy,
) -> None:
    """A replica that has the blocks and lacks an index of transactions knows none by its hash."""
    for method in ("eth_getTransactionReceipt", "eth_getTransactionByHash"):
        proxy.fail_always(method, change(lambda _: None))
    await sender.send(approving())
    for _ in range(3):
        await sender.run_once()
        await fresh_sandbox.mine(3)
    assert (await stored(outbox)).status is TxStatus.SENT
    proxy.heal()
    assert await sender.run_once() == 0
    assert (await stored(outbox)).status is TxStatus.CONFIRMED


async def test_a_gap_before_the_first_waiting_nonce_is_filled(
    sender: Sender,
    approving: Approving,
    fresh_sandbox: Sandbox,
    outbox: TxOutbox,
    proxy: FaultProxy,
    clock: Clock,
) -> None:
    before = await used_nonces(fresh_sandbox)
    proxy.fail("eth_getTransactionCount", change(lambda count: hex(int(count, 16) + 2)))
    sent = await sender.send(approving())
    assert sent.account_nonce == before + 2
    await sender.run_once()
    clock.move_s(19)
    await sender.run_once()
    assert await used_nonces(fresh_sandbox) == before
    clock.move_s(1)
    await sender.run_once()
    assert await used_nonces(fresh_sandbox) == before + 3
    await fresh_sandbox.mine()
    await sender.run_once()
    assert await sender.run_once() == 0
    assert (await stored(outbox)).status is TxStatus.CONFIRMED
    filler = await outbox.load_at_nonce(sender.address, before)
    assert filler is not None
    assert filler.status is TxStatus.CANCELED


FAR: Final = 100_000


def add(many: int) -> Fault:
    """The node counts more transactions than there are."""
    return change(lambda count: hex(int(count, 16) + many))


@pytest.mark.case("D-07")
@pytest.mark.parametrize("has_sent", [False, True])
async def test_a_nonce_far_ahead_that_the_node_names_once_is_not_taken(
    sender: Sender,
    approving: Approving,
    outbox: TxOutbox,
    proxy: FaultProxy,
    clock: Clock,
    *,
    has_sent: bool,
) -> None:
    last = (await sender.send(approving("approve-0"))).account_nonce if has_sent else None
    calls = [approving(f"approve-{number}", gas=100_000) for number in (1, 2)]
    with capture_logs() as logs:
        for send in (sender.send(calls[0]), sender.send_all(calls)):
            proxy.fail("eth_getTransactionCount", add(FAR))
            with pytest.raises(ChainInconsistent, match="FORETELL_RPC_URL"):
                await send
            assert not await outbox.load_all(["approve-1", "approve-2"])
            assert await outbox.load_last_nonce(sender.address) == last
            clock.move_s(CONFIRMED_AFTER_S)
    lines = [each for each in logs if each["event"] == "node counts unknown transactions"]
    assert ["FORETELL_RPC_URL" in each["cure"] for each in lines] == [True], "one a minute"
    await sender.send_all(calls)
    first = 0 if last is None else last + 1
    sent = await outbox.load_all(["approve-1", "approve-2"])
    assert [each.account_nonce for each in sent] == [first, first + 1]
    await sender.run_once()
    assert (await stored(outbox)).block_number is not None


async def test_a_nonce_just_ahead_is_taken_and_one_more_is_not(
    sender: Sender, approving: Approving, fresh_sandbox: Sandbox, proxy: FaultProxy
) -> None:
    before = await used_nonces(fresh_sandbox)
    proxy.fail("eth_getTransactionCount", add(NONCES_AHEAD_MAX + 1))
    with pytest.raises(ChainInconsistent):
        await sender.send(approving())
    proxy.fail("eth_getTransactionCount", add(NONCES_AHEAD_MAX))
    assert (await sender.send(approving())).account_nonce == before + NONCES_AHEAD_MAX


@pytest.mark.parametrize("has_sent", [False, True])
async def test_a_nonce_far_ahead_is_taken_once_blocks_have_reached_it(
    sender: Sender,
    approving: Approving,
    fresh_sandbox: Sandbox,
    outbox: TxOutbox,
    clock: Clock,
    *,
    has_sent: bool,
) -> None:
    """Another program used the account, or the outbox is an older copy."""
    if has_sent:
        await sender.send(approving("approve-0"))
        await sender.run_once()
    else:
        await fresh_sandbox.rpc.send("evm_setAutomine", False)  # noqa: FBT003 - as the protocol has it
    first = await used_nonces(fresh_sandbox)
    await use_elsewhere(fresh_sandbox, NONCES_AHEAD_MAX + 1)
    for pause_s in (0, CONFIRMED_AFTER_S - 1):
        clock.move_s(pause_s)
        with pytest.raises(ChainInconsistent):
            await sender.send(approving())
    clock.move_s(1)
    if not has_sent:
        with pytest.raises(ChainInconsistent):
            await sender.send(approving())
        await fresh_sandbox.rpc.send("evm_setAutomine", True)  # noqa: FBT003 - as the protocol has it
        await fresh_sandbox.mine()
    sent = await sender.send(approving())
    assert sent.account_nonce == first + NONCES_AHEAD_MAX + 1
    await sender.run_once()
    assert (await stored(outbox)).block_number is not None


async def use_elsewhere(sandbox: Sandbox, many: int) -> None:
    """Send transactions of the account that its outbox does not have."""
    await sandbox.rpc.send("anvil_impersonateAccount", sandbox.trader().address)
    call = {"from": sandbox.trader().address, "to": SPENDER, "gas": hex(21_000)}
    for _ in range(many):
        await sandbox.rpc.send("eth_sendTransaction", call)
    await sandbox.rpc.send("anvil_stopImpersonatingAccount", sandbox.trader().address)


async def test_a_confirmed_transaction_that_the_chain_lost_is_broadcast_again(
    sender: Sender, approving: Approving, fresh_sandbox: Sandbox, outbox: TxOutbox, clock: Clock
) -> None:
    snapshot = await fresh_sandbox.rpc.send("evm_snapshot")
    await sender.send(approving())
    await sender.run_once()
    await fresh_sandbox.mine()
    assert await sender.run_once() == 0
    await fresh_sandbox.rpc.send("evm_revert", snapshot)
    behind = Approve(Address("0x" + "77" * 20), 5).encode()
    await sender.send(OutgoingTx("other", fresh_sandbox.deployment.collateral, behind))
    await sender.run_once()
    clock.move_s(20)
    await sender.run_once()
    assert await allowed(fresh_sandbox) == 7
    await sender.run_once()
    assert (await stored(outbox, "other")).block_number is not None
