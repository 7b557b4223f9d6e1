import asyncio
from dataclasses import replace

import pytest
from tests.chain.sending import (
    OPTIONS,
    SPENDER,
    Approving,
    MakeSender,
    allowed,
    stored,
    used_nonces,
)
from tests.rigs.fault_proxy import BROADCAST, FaultProxy, honest, lose_request, refuse
from tests.rigs.sandbox import Sandbox

from foretell.chain.sender import Sender
from foretell.domain.contracts.calldata import Transfer
from foretell.domain.contracts.sandbox_accounts import TRADER_UNITS
from foretell.domain.errors.chain import (
    ChainUnavailable,
    ExecutionReverted,
    RpcRefused,
    TxIdReused,
)
from foretell.domain.evm.transaction import OutgoingTx, TxStatus
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Database
from foretell.store.outbox.transactions import SETTLEMENT, TxOutbox

pytestmark = pytest.mark.anyio


async def test_a_sent_transaction_is_mined_and_then_confirmed(
    sender: Sender, approving: Approving, fresh_sandbox: Sandbox, outbox: TxOutbox
) -> None:
    sent = await sender.send(approving())
    assert sent.status is TxStatus.SENT
    assert await sender.run_once() == 1
    mined = await stored(outbox)
    assert mined.status is TxStatus.MINED
    assert mined.mined_hash == sent.newest.tx_hash
    receipt = await fresh_sandbox.receipt(sent.newest.tx_hash)
    assert mined.block_number == receipt.block_number
    assert receipt.gas_used < sent.gas < 2 * receipt.gas_used
    await fresh_sandbox.mine()
    assert await sender.run_once() == 0
    assert (await stored(outbox)).status is TxStatus.CONFIRMED
    assert await sender.run_once() == 0
    assert await allowed(fresh_sandbox) == 7


async def test_an_id_is_one_transaction_however_often_it_is_sent(
    sender: Sender, approving: Approving, fresh_sandbox: Sandbox
) -> None:
    before = await used_nonces(fresh_sandbox)
    first = await sender.send(approving())
    assert await sender.send(approving()) == first
    again = await asyncio.gather(*(sender.send(approving("approve-2")) for _ in range(8)))
    assert len({tx.newest.tx_hash for tx in again}) == 1
    assert await used_nonces(fresh_sandbox) == before + 2
    await sender.run_once()
    assert (await sender.send(approving())).status is TxStatus.CONFIRMED
    with pytest.raises(TxIdReused):
        await sender.send(approving(units=8))


async def test_a_call_that_would_revert_is_neither_stored_nor_broadcast(
    sender: Sender, fresh_sandbox: Sandbox, outbox: TxOutbox, proxy: FaultProxy
) -> None:
    too_much = Transfer(SPENDER, TRADER_UNITS + 1).encode()
    with pytest.raises(ExecutionReverted):
        await sender.send(OutgoingTx("pay-1", fresh_sandbox.deployment.collateral, too_much))
    assert await outbox.load("pay-1") is None
    assert await outbox.load_last_nonce(sender.address) is None
    assert proxy.asked[BROADCAST] == 0


async def test_a_call_is_simulated_with_the_gas_that_it_will_have(
    sender: Sender, approving: Approving, outbox: TxOutbox
) -> None:
    with pytest.raises(RpcRefused):
        await sender.send(approving(gas=30_000))
    assert await outbox.load("approve-1") is None
    assert (await sender.send(approving(gas=90_000))).gas == 90_000


WITNESS = Address("0x" + "1d" * 20)
SEEN = {"GASPRICE": "3a", "ORIGIN": "32", "GAS": "5a"} | {
    "NUMBER": "43",
    "COINBASE": "41",
    "BASEFEE": "48",
    "BLOCKHASH": "6001430340",
}
"""The opcodes by which a contract may recognize a simulation."""


async def test_h1_a_simulation_has_the_sender_the_price_and_the_block_of_the_transaction(
    make_sender: MakeSender, fresh_sandbox: Sandbox
) -> None:
    sender = make_sender(replace(OPTIONS, has_simulated_price=True))
    stored_words = "".join(f"{op}60{32 * place:02x}52" for place, op in enumerate(SEEN.values()))
    size = f"60{32 * len(SEEN):02x}"
    code = f"0x{stored_words}{size}5fa0{size}5ff3"
    await fresh_sandbox.rpc.send("anvil_setCode", WITNESS, code)
    call = OutgoingTx("see-1", WITNESS, b"", 200_000)
    simulated = await sender.result_of(call)
    sent = await sender.send(call)
    await sender.run_once()
    receipt = await sender.receipt(sent.newest.tx_hash)
    assert receipt is not None
    (log,) = receipt.logs
    assert log.data == "0x" + simulated.hex()


async def test_a_call_is_simulated_after_the_pending_ones(
    sender: Sender, still_sandbox: Sandbox, outbox: TxOutbox
) -> None:
    collateral = still_sandbox.deployment.collateral
    everything = OutgoingTx("pay-1", collateral, Transfer(SPENDER, TRADER_UNITS).encode())
    await sender.send(everything)
    with pytest.raises(ExecutionReverted):
        await sender.send(OutgoingTx("pay-2", collateral, Transfer(SPENDER, 1).encode()))
    assert await outbox.load("pay-2") is None


async def test_nothing_is_stored_when_the_node_is_down_before_signing(
    sender: Sender, approving: Approving, outbox: TxOutbox, proxy: FaultProxy
) -> None:
    proxy.fail_always("eth_estimateGas", lose_request)
    with pytest.raises(ChainUnavailable):
        await sender.send(approving())
    assert await outbox.load("approve-1") is None


async def test_concurrent_transactions_get_one_nonce_each_without_a_gap(
    sender: Sender, approving: Approving, fresh_sandbox: Sandbox
) -> None:
    before = await used_nonces(fresh_sandbox)
    sent = await asyncio.gather(
        *(sender.send(approving(f"approve-{number}", number)) for number in range(20))
    )
    nonces = sorted(tx.account_nonce for tx in sent)
    assert nonces == list(range(before, before + 20))
    await fresh_sandbox.mine()
    await sender.run_once()
    assert await sender.run_once() == 0


async def test_two_senders_of_one_account_send_each_transaction_once(
    make_sender: MakeSender, approving: Approving, fresh_sandbox: Sandbox
) -> None:
    before = await used_nonces(fresh_sandbox)
    senders = [make_sender(), make_sender()]
    sent = await asyncio.gather(
        *(
            senders[number % 2].send(approving(f"approve-{number // 2}", number // 2))
            for number in range(12)
        )
    )
    assert len({tx.tx_id for tx in sent}) == len({tx.account_nonce for tx in sent}) == 6
    assert await used_nonces(fresh_sandbox) == before + 6


async def test_the_watcher_continues_after_faults_and_wakes_for_new_transactions(
    sender: Sender,
    approving: Approving,
    fresh_sandbox: Sandbox,
    outbox: TxOutbox,
    proxy: FaultProxy,
    database: Database,
) -> None:
    proxy.fail("eth_chainId", refuse("starting"))
    watching = asyncio.create_task(sender.run())
    watch = await database.watch(SETTLEMENT.topic)
    try:
        await sender.send(approving())
        async with asyncio.timeout(60):
            while (await stored(outbox)).status is not TxStatus.MINED:
                await watch.wait(1)
        await fresh_sandbox.mine()
        async with asyncio.timeout(60):
            while (await stored(outbox)).status is not TxStatus.CONFIRMED:
                await watch.wait(1)
    finally:
        watching.cancel()


async def ids_sent(outbox: TxOutbox, sender: Sender, *ids: str) -> list[tuple[str, TxStatus]]:
    """Return the transactions with these ids and their statuses, in the order of their nonces."""
    await sender.run_once()
    return [(tx.tx_id, tx.status) for tx in await outbox.load_all(ids)]


def in_order(approving: Approving, *ids: str) -> list[OutgoingTx]:
    return [replace(approving(tx_id), gas=100_000) for tx_id in ids]


async def test_transactions_sent_together_have_nonces_in_their_order(
    sender: Sender, approving: Approving, outbox: TxOutbox, proxy: FaultProxy
) -> None:
    together = in_order(approving, "c", "a", "b")
    await sender.send_all(together)
    asked = proxy.asked["eth_feeHistory"]
    await sender.send_all([*together, *in_order(approving, "d")])
    assert proxy.asked[BROADCAST] == 4
    assert proxy.asked["eth_feeHistory"] == asked == 1
    sent = await ids_sent(outbox, sender, "a", "b", "c", "d")
    assert [tx_id for tx_id, _ in sent] == ["c", "a", "b", "d"]
    assert {status for _, status in sent} <= {TxStatus.MINED, TxStatus.CONFIRMED}


async def test_transactions_sent_together_and_known_with_another_call_are_refused(
    sender: Sender, approving: Approving, outbox: TxOutbox
) -> None:
    await sender.send(approving("a"))
    with pytest.raises(TxIdReused):
        await sender.send_all([*in_order(approving, "b"), replace(approving("a", 8), gas=100_000)])
    assert await outbox.load("b") is None


async def test_one_that_the_node_refuses_holds_up_none_of_those_sent_with_it(
    sender: Sender, approving: Approving, outbox: TxOutbox, proxy: FaultProxy
) -> None:
    proxy.fail(BROADCAST, honest, refuse("max fee per gas less than block base fee"))
    await sender.send_all(in_order(approving, "a", "b", "c"))
    assert len((await stored(outbox, "b")).attempts) == 1
    assert proxy.asked[BROADCAST] == 4
    sent = await ids_sent(outbox, sender, "a", "b", "c")
    assert {status for _, status in sent} <= {TxStatus.MINED, TxStatus.CONFIRMED}


async def test_those_sent_together_without_an_answer_are_broadcast_again(
    sender: Sender, approving: Approving, outbox: TxOutbox, proxy: FaultProxy
) -> None:
    proxy.fail(BROADCAST, honest, lose_request)
    await sender.send_all(in_order(approving, "a", "b", "c"))
    assert {tx.status for tx in await outbox.load_all(["a", "b", "c"])} == {TxStatus.PENDING}
    await sender.run_once()
    sent = await ids_sent(outbox, sender, "a", "b", "c")
    assert {status for _, status in sent} <= {TxStatus.MINED, TxStatus.CONFIRMED}


async def test_a_nonce_that_another_process_took_is_not_used_by_those_sent_together(
    sender: Sender,
    make_sender: MakeSender,
    approving: Approving,
    outbox: TxOutbox,
    fresh_sandbox: Sandbox,
) -> None:
    before = await used_nonces(fresh_sandbox)
    other = make_sender()
    await asyncio.gather(
        sender.send_all(in_order(approving, "a", "b", "c")),
        other.send_all(in_order(approving, "d", "e", "f")),
    )
    for _ in range(2):
        await sender.run_once()
    sent = await outbox.load_all(list("abcdef"))
    assert [tx.account_nonce for tx in sent] == list(range(before, before + 6))
    assert await used_nonces(fresh_sandbox) == before + 6
