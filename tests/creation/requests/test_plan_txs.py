from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.creation.rig import CreatorClient, error_of, status_of
from tests.creation.test_finalize import reasons, send_as
from tests.rigs.fault_proxy import Answer, FaultProxy, Forward, Request, change, refuse
from tests.rigs.values import a_word, an_address
from typing_extensions import override

from foretell.chain.rpc import Rpc
from foretell.creation.chain_checks.plan_txs import (
    TX_FIELDS_BYTES_MAX,
    TXS_PER_REQUEST_MAX,
    fetch_plan_txs,
)
from foretell.domain.creation.plan import PlanItem
from foretell.domain.errors.creation import TxPending

pytestmark = pytest.mark.anyio

TX = "eth_getTransactionByHash"
RECEIPT = "eth_getTransactionReceipt"
LARGE = "0x" + "00" * 10**6


async def test_attack_h1_no_receipt_of_a_strangers_transaction_is_asked_for(
    creator: CreatorClient, proxy: FaultProxy
) -> None:
    request_id = await creator.prepared()
    items = (await creator.record(request_id))["prepared"]["txPlan"]
    stranger = creator.rig.sandbox.trader()
    hashes = [await send_as(creator.rig, stranger, items[0]) for _ in items]
    named = [{"id": item["id"], "hash": each} for item, each in zip(items, hashes, strict=True)]
    await creator.confirm(request_id, named)

    first, again = [await creator.finalize(request_id) for _ in range(2)]

    assert reasons(first) == reasons(again)
    assert {reason.split(",")[0] for reason in reasons(first).values()} == {
        f"sender is {stranger.address}"
    }
    assert (proxy.asked[TX], proxy.asked[RECEIPT]) == (2 * len(items), 0)


@pytest.mark.parametrize("change_of", ["sender", "target", "calldata"])
async def test_attack_h1_no_receipt_is_asked_for_while_one_transaction_is_not_the_plans(
    creator: CreatorClient, proxy: FaultProxy, change_of: str
) -> None:
    rig = creator.rig
    request_id = await creator.prepared()
    approve, initialize = (await creator.record(request_id))["prepared"]["txPlan"]
    (good,) = await creator.execute([approve])
    account = rig.sandbox.trader() if change_of == "sender" else creator.account
    changed = {"target": {"to": creator.address}, "calldata": {"data": approve["data"][:-2] + "41"}}
    other = await send_as(rig, account, approve, **changed.get(change_of, {}))

    answer = await creator.finalize(request_id, [good, {"id": initialize["id"], "hash": other}])

    assert set(reasons(answer)) == {initialize["id"]}
    assert (proxy.asked[TX], proxy.asked[RECEIPT]) == (2, 0)


async def test_attack_h1_logs_of_receipts_are_not_decoded(
    creator: CreatorClient, proxy: FaultProxy
) -> None:
    request_id = await creator.prepared()
    txs = await creator.paid(request_id)
    proxy.fail_always(RECEIPT, change(lambda receipt: receipt | {"logs": "of another shape"}))

    answer = await creator.finalize(request_id, txs)

    assert answer.json()["status"] == "finalize_in_progress"


def enlarged(tx_hash: str) -> Any:
    """Let the transaction with this hash have a megabyte of calldata."""

    async def fault(request: Request, forward: Forward) -> Answer | None:
        answer = await forward()
        if request["params"] == [tx_hash]:
            answer["result"]["input"] = LARGE
        return answer

    return fault


async def test_attack_h1_a_transaction_that_is_larger_than_the_plans_is_refused_unread(
    creator: CreatorClient, proxy: FaultProxy
) -> None:
    request_id = await creator.prepared()
    txs = await creator.paid(request_id)
    proxy.fail_always(TX, enlarged(txs[1]["hash"]))

    answer = await creator.finalize(request_id, txs)

    assert reasons(answer) == {txs[1]["id"]: "the transaction is larger than any of the plan"}
    assert proxy.asked[RECEIPT] == 0
    assert await status_of(creator, request_id) == "prepared"


class SilentRpc(Rpc):
    """A node that knows no transaction."""

    sizes: list[tuple[int, int | None]]

    @override
    async def send_all(
        self, calls: Sequence[tuple[str, Sequence[object]]], *, answer_bytes_max: int | None = None
    ) -> list[Any]:
        self.sizes.append((len(calls), answer_bytes_max))
        return [None for _ in calls]


async def test_attack_h1_transactions_are_asked_for_in_small_parts_with_a_bound() -> None:
    calldata = b"\x01" * 100
    plan = [
        PlanItem(f"item-{number}", an_address("target"), calldata, "")
        for number in range(2 * TXS_PER_REQUEST_MAX + 1)
    ]
    hash_by_id = {item.item_id: a_word(item.item_id) for item in plan}
    async with SilentRpc("http://127.0.0.1:1") as rpc:
        rpc.sizes = []
        with pytest.raises(TxPending):
            await fetch_plan_txs(rpc, plan, hash_by_id, an_address("creator"))

    each = 2 * len(calldata) + TX_FIELDS_BYTES_MAX
    full = (TXS_PER_REQUEST_MAX, TXS_PER_REQUEST_MAX * each)
    assert rpc.sizes == [full, full, (1, each)]


def of_another_hash(name: str) -> Any:
    def changed(answer: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**answer, name: a_word("another")}

    return change(changed)


@pytest.mark.parametrize(
    ("method", "fault", "refusal"),
    [
        (TX, refuse("busy"), (502, "chain_unavailable")),
        (TX, of_another_hash("hash"), (425, "tx_pending")),
        (RECEIPT, of_another_hash("transactionHash"), (425, "tx_pending")),
        (RECEIPT, change(lambda _: None), (425, "tx_pending")),
        (RECEIPT, change(lambda _: {}), (502, "chain_unavailable")),
    ],
)
async def test_an_answer_that_is_none_of_the_transactions_changes_nothing(
    creator: CreatorClient,
    proxy: FaultProxy,
    method: str,
    fault: Any,
    refusal: tuple[int, str],
) -> None:
    request_id = await creator.prepared()
    txs = await creator.paid(request_id)
    proxy.fail(method, fault)

    refused = await creator.finalize(request_id, txs)
    started = await creator.finalize(request_id, txs)

    assert error_of(refused) == refusal
    assert started.json()["status"] == "finalize_in_progress"
