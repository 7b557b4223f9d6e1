import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from tests.creation.rig import CreationRig, CreatorClient, details_of, error_of, status_of
from tests.rigs.fault_proxy import Answer, FaultProxy, Forward, Request
from tests.rigs.payloads import event_fields
from tests.rigs.values import NOW_MS, a_word

from foretell.chain.setup_caller import SetupCaller
from foretell.creation import finalize
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID, SandboxAccount
from foretell.domain.creation.plan import PlanTx
from foretell.domain.creation.request import RequestTrigger
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.hexadecimal import parse_address, parse_bytes32
from foretell.store.creation.requests import CreationRequest, load_request, move_request, record_txs
from foretell.store.database import Transaction

pytestmark = pytest.mark.anyio

Txs = list[dict[str, str]]
READ_WITHIN_S = 60.0


async def send_as(
    rig: CreationRig, account: SandboxAccount, item: Mapping[str, Any], **changed: Any
) -> str:
    """Send a call like an item of a plan, from any account, and return its hash."""
    call = ContractCall(
        parse_address(changed.get("to", item["to"])),
        bytes.fromhex(changed.get("data", item["data"])[2:]),
        value_wei=changed.get("value", 0),
    )
    caller = SetupCaller(rig.sandbox.rpc, account.private_key, SANDBOX_CHAIN_ID, mines=True)
    (receipt,) = await caller.call_all([call])
    return str(receipt.tx_hash)


def reasons(answer: httpx.Response) -> dict[str, str]:
    assert error_of(answer) == (422, "tx_invalid")
    return {each["id"]: each["reason"] for each in answer.json()["error"]["details"]}


@pytest.mark.spec(55, 59, 67)
async def test_hashes_are_stored_in_parts_all_at_once_and_repeatedly(
    creator: CreatorClient,
) -> None:
    request_id = await creator.prepared()
    first = {"id": "approve-direct-resolution-fee", "hash": a_word("1")}
    second = {"id": "initialize-market-1", "hash": a_word("2")}

    part = await creator.confirm(request_id, [first])
    full = await creator.confirm(request_id, [first, second])
    again = await creator.confirm(request_id, [])
    replaced = await creator.confirm(request_id, [first | {"hash": a_word("3")}])

    assert part.json() == {"requestId": request_id, "status": "prepared", "confirmedTxs": [first]}
    assert full.json()["confirmedTxs"] == again.json()["confirmedTxs"] == [first, second]
    assert replaced.json()["confirmedTxs"] == [first | {"hash": a_word("3")}, second]
    assert (await creator.record(request_id))["txs"] == replaced.json()["confirmedTxs"]


@pytest.mark.spec(59, 76)
@pytest.mark.parametrize(
    ("txs", "field"),
    [
        ([{"id": "initialize-market-2", "hash": a_word("1")}], "txs/0/id"),
        ([{"id": "update-metadata-1", "hash": a_word("1")}], "txs/0/id"),
        (
            [
                {"id": "initialize-market-1", "hash": a_word("1")},
                {"id": "initialize-market-1", "hash": a_word("2")},
            ],
            "txs/1/id",
        ),
    ],
)
async def test_each_item_of_the_plan_takes_one_hash_and_nothing_else_does(
    creator: CreatorClient, txs: Txs, field: str
) -> None:
    request_id = await creator.prepared()

    confirm = await creator.confirm(request_id, txs)
    finalize = await creator.finalize(request_id, txs)

    assert error_of(confirm) == error_of(finalize) == (400, "validation_error")
    assert details_of(confirm)[0][0] == details_of(finalize)[0][0] == field
    assert (await creator.record(request_id))["txs"] == []


@pytest.mark.spec(60, 76)
async def test_a_hash_that_the_chain_does_not_know_is_stored_and_then_refused(
    creator: CreatorClient,
) -> None:
    request_id = await creator.prepared()
    txs = await creator.paid(request_id)
    nonsense = [txs[0], txs[1] | {"hash": a_word("nonsense")}]

    taken = await creator.confirm(request_id, nonsense)
    refused = await creator.finalize(request_id)

    assert taken.status_code == 200
    assert error_of(refused) == (425, "tx_pending")
    assert refused.json()["error"]["details"] == [nonsense[1]]
    assert await status_of(creator, request_id) == "prepared"
    mended = await creator.finalize(request_id, txs)
    assert mended.json()["status"] == "finalize_in_progress"


@pytest.mark.spec(60, 68, 78)
async def test_a_transaction_that_breaks_one_of_five_checks_leaves_the_request_prepared(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    other = rig.sandbox.trader()
    request_id = await creator.prepared()
    approve, initialize = (await creator.record(request_id))["prepared"]["txPlan"]
    good = (await creator.execute([approve]))[0]
    other_data = approve["data"][:-2] + "41"
    broken = {
        "sender": await send_as(rig, other, approve),
        "target": await send_as(rig, creator.account, approve, to=creator.address),
        "calldata": await send_as(rig, creator.account, approve, data=other_data),
        "value": await reverted(rig, creator.account, approve, value=1),
        "the transaction reverted": await reverted(rig, creator.account, initialize),
    }

    reason_by_case = {}
    for what, tx_hash in broken.items():
        item = initialize if what == "the transaction reverted" else approve
        txs = [good, {"id": initialize["id"], "hash": tx_hash}]
        if item is approve:
            txs = [{"id": approve["id"], "hash": tx_hash}]
        reason_by_case[what] = reasons(await creator.finalize(request_id, txs)).get(item["id"], "")
        assert await status_of(creator, request_id) == "prepared"

    assert reason_by_case["sender"].startswith("sender is ")
    assert reason_by_case["target"].startswith("target is ")
    assert reason_by_case["calldata"] == "calldata differs from the plan's"
    assert reason_by_case["value"] == "value is 1, and the plan's is 0"
    assert reason_by_case["the transaction reverted"] == "the transaction reverted"


async def reverted(
    rig: CreationRig, account: SandboxAccount, item: Mapping[str, Any], value: int = 0
) -> str:
    """Send an item with little gas, or with a value that no contract takes, and return its hash."""
    rpc = rig.sandbox.rpc
    await rpc.send("anvil_impersonateAccount", account.address)
    call = {"from": account.address, "to": item["to"], "data": item["data"], "gas": hex(100_000)}
    tx_hash = await rpc.send("eth_sendTransaction", call | {"value": hex(value)})
    await rpc.send("anvil_stopImpersonatingAccount", account.address)
    await rig.sandbox.mine()
    receipt = await rig.sandbox.receipt(tx_hash)
    assert not receipt.is_success
    return str(tx_hash)


@pytest.mark.spec(60)
async def test_one_hash_does_not_count_for_two_items(creator: CreatorClient) -> None:
    request_id = await creator.prepared()
    txs = await creator.paid(request_id)

    refused = await creator.finalize(request_id, [txs[0], txs[1] | {"hash": txs[0]["hash"]}])

    assert set(reasons(refused)) == {txs[0]["id"], txs[1]["id"]}


@pytest.mark.spec(60, 77)
async def test_items_without_a_hash_are_reported(creator: CreatorClient) -> None:
    request_id = await creator.prepared()
    txs = await creator.paid(request_id)

    nothing = await creator.finalize(request_id)
    half = await creator.finalize(request_id, txs[:1])
    rest = await creator.finalize(request_id, txs[1:])

    assert reasons(nothing) == dict.fromkeys(
        [each["id"] for each in txs], "no hash was confirmed for it"
    )
    assert reasons(half) == {txs[1]["id"]: "no hash was confirmed for it"}
    assert rest.json() == {"requestId": request_id, "status": "finalize_in_progress"}


@pytest.mark.spec(60)
async def test_a_transaction_that_waits_for_a_block_is_reported(creator: CreatorClient) -> None:
    rig = creator.rig
    request_id = await creator.prepared()
    items = (await creator.record(request_id))["prepared"]["txPlan"]
    txs = await creator.execute(items[:1])
    await rig.sandbox.rpc.send("evm_setAutomine", False)  # noqa: FBT003 - the node's own
    try:
        await rig.sandbox.rpc.send("anvil_impersonateAccount", creator.account.address)
        call = {"from": creator.account.address, "to": items[1]["to"], "data": items[1]["data"]}
        tx_hash = await rig.sandbox.rpc.send("eth_sendTransaction", call | {"gas": hex(3_000_000)})
        txs.append({"id": items[1]["id"], "hash": tx_hash})

        waiting = await creator.finalize(request_id, txs)
        await rig.sandbox.mine()
        accepted = await creator.finalize(request_id)
    finally:
        await rig.sandbox.rpc.send("evm_setAutomine", True)  # noqa: FBT003 - the node's own

    assert error_of(waiting) == (425, "tx_pending")
    assert waiting.json()["error"]["details"] == [txs[1]]
    assert accepted.json()["status"] == "finalize_in_progress"


@pytest.mark.case("C-14")
@pytest.mark.spec(78)
async def test_another_creator_finds_no_such_request(creator: CreatorClient) -> None:
    request_id = await creator.prepared()
    other = creator.rig.creator(creator.rig.sandbox.trader())
    txs = await creator.paid(request_id)

    confirm = await other.confirm(request_id, txs)
    finalize = await other.finalize(request_id, txs)

    assert error_of(confirm) == error_of(finalize) == (404, "request_not_found")


@pytest.mark.spec(61, 68)
async def test_a_pending_update_reports_the_updates_that_are_needed(creator: CreatorClient) -> None:
    request_id = await creator.prepared()
    txs = await creator.paid(request_id)
    started = await creator.finalize(request_id, txs)
    running = await creator.finalize(request_id, txs)

    await creator.rig.settle()
    pending = (await creator.finalize(request_id)).json()
    record = await creator.record(request_id)

    assert started.json() == running.json()
    assert started.json() == {"requestId": request_id, "status": "finalize_in_progress"}
    assert pending.keys() == {
        "requestId",
        "status",
        "creatorTxCount",
        "registerResults",
        "metadataUpdates",
        "metadataUpdateTxPlan",
    }
    assert (pending["status"], pending["creatorTxCount"]) == ("metadata_update_pending", 2)
    for name in ("registerResults", "metadataUpdates", "metadataUpdateTxPlan"):
        assert pending[name] == record[name]
    assert pending["metadataUpdates"][0]["updateTxHash"] is None
    assert [item["id"] for item in pending["metadataUpdateTxPlan"]] == ["update-metadata-1"]


@pytest.mark.spec(55, 62, 68, 77)
async def test_confirmed_updates_finalize_the_request(creator: CreatorClient) -> None:
    request_id = await creator.pending_update()
    record = await creator.record(request_id)
    updates = await creator.execute(record["metadataUpdateTxPlan"])
    all_txs = record["txs"] + updates

    confirmed = await creator.confirm(request_id, updates)
    final = await creator.finalize(request_id, all_txs)
    again = await creator.finalize(request_id, all_txs)
    silent = await creator.finalize(request_id)

    assert confirmed.json() == {
        "requestId": request_id,
        "status": "metadata_update_pending",
        "confirmedTxs": all_txs,
    }
    body = final.json()
    assert body.keys() == {
        "requestId",
        "status",
        "creatorTxCount",
        "registerResults",
        "metadataUpdates",
    }
    assert (body["status"], body["creatorTxCount"]) == ("finalized", 3)
    assert body["metadataUpdates"][0]["updateTxHash"] == updates[0]["hash"]
    assert again.json() == silent.json() == body


@pytest.mark.spec(62)
async def test_without_the_new_hashes_the_pending_answer_is_repeated(
    creator: CreatorClient,
) -> None:
    request_id = await creator.pending_update()
    pending = await creator.finalize(request_id)

    known = await creator.finalize(request_id, (await creator.record(request_id))["txs"])

    assert known.json() == pending.json()
    assert known.json()["status"] == "metadata_update_pending"


@pytest.mark.spec(62)
async def test_with_one_hash_of_several_missing_the_request_stays_pending(
    creator: CreatorClient,
) -> None:
    request_id = await creator.pending_update(
        creator.payload(**event_fields("multi_multiple", count=2))
    )
    pending = await creator.finalize(request_id)
    first, second = await creator.execute(pending.json()["metadataUpdateTxPlan"])

    with_first = await creator.finalize(request_id, [first])
    updates = (await creator.record(request_id))["metadataUpdates"]
    with_both = await creator.finalize(request_id, [second])

    assert with_first.json() == pending.json()
    assert [update["updateTxHash"] for update in updates] == [None, None]
    final = with_both.json()
    assert (final["status"], final["creatorTxCount"]) == ("finalized", 5)
    hashes = [update["updateTxHash"] for update in final["metadataUpdates"]]
    assert hashes == [first["hash"], second["hash"]]


@pytest.mark.spec(62)
async def test_an_update_that_is_not_as_planned_stays_pending(creator: CreatorClient) -> None:
    request_id = await creator.pending_update()
    record = await creator.record(request_id)
    (update,) = record["metadataUpdateTxPlan"]
    old = record["txs"][0]["hash"]

    wrong = await creator.finalize(request_id, [{"id": update["id"], "hash": old}])
    unknown = await creator.finalize(request_id, [{"id": update["id"], "hash": a_word("x")}])

    assert set(reasons(wrong)) == {update["id"]}
    assert error_of(unknown) == (425, "tx_pending")
    assert await status_of(creator, request_id) == "metadata_update_pending"


@pytest.mark.spec(77)
@pytest.mark.parametrize("step", ["pending_update", "finalized"])
async def test_a_hash_that_was_verified_is_not_replaced(creator: CreatorClient, step: str) -> None:
    request_id = await getattr(creator, step)()
    (first, *_) = (await creator.record(request_id))["txs"]

    answer = await creator.finalize(request_id, [first | {"hash": a_word("other")}])

    assert error_of(answer) == (400, "validation_error")
    assert details_of(answer) == [("txs/0/hash", f"must be {first['hash']}, which was verified")]


async def test_no_hash_is_stored_before_there_is_a_plan(creator: CreatorClient) -> None:
    request_id = await creator.prepare()

    confirm = await creator.confirm(request_id, [])

    assert error_of(confirm) == (409, "invalid_state")


@pytest.mark.deviation(11)
@pytest.mark.spec(76)
async def test_tx_confirm_echoes_known_hashes_in_every_later_status(
    creator: CreatorClient,
) -> None:
    request_id = await creator.prepared()
    txs = await creator.paid(request_id)
    await creator.confirm(request_id, txs)
    await creator.finalize(request_id)
    running = await creator.confirm(request_id, txs)
    other = await creator.confirm(request_id, [txs[0] | {"hash": a_word("other")}])
    await creator.rig.settle()
    pending = await creator.confirm(request_id, txs)
    updates = (await creator.record(request_id))["metadataUpdateTxPlan"]
    hashes = await creator.execute(updates)
    await creator.finalize(request_id, hashes)
    finalized = await creator.confirm(request_id, [*txs, *hashes])

    echoes = [(each.json()["status"], each.json()["confirmedTxs"]) for each in (running, pending)]
    assert echoes == [("finalize_in_progress", txs), ("metadata_update_pending", txs)]
    assert finalized.json()["status"] == "finalized"
    assert finalized.json()["confirmedTxs"] == [*txs, *hashes]
    assert error_of(other) == (409, "invalid_state")


async def test_a_request_that_failed_after_its_plan_echoes_its_hashes(
    creator: CreatorClient,
) -> None:
    request_id = await creator.prepared()
    txs = await creator.paid(request_id)
    await creator.confirm(request_id, txs)
    database = creator.rig.database
    async with database.writing() as tx:
        request = await load_request(tx, request_id)
        assert request is not None
        assert await move_request(tx, request, RequestTrigger.FAIL, NOW_MS, error_message="why")

    echoed = await creator.confirm(request_id, txs)

    assert (echoed.json()["status"], echoed.json()["confirmedTxs"]) == ("failed", txs)
    assert error_of(await creator.finalize(request_id, txs)) == (409, "invalid_state")


@pytest.mark.spec(64)
async def test_an_unprepared_or_failed_request_is_not_finalized(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    challenge = (await creator.ask(creator.payload())).json()
    unsigned = await creator.finalize(challenge["requestId"])
    other = rig.creator(await rig.newcomer("without a whitelist"))
    request_id = await other.prepare(other.payload(slug="other"))
    running = await other.finalize(request_id)
    rig.clock.at_ms += rig.options.prepare_deadline_ms + 1
    await rig.settle()

    failed = await other.finalize(request_id)
    confirm = await other.confirm(request_id, [])

    refusals = [unsigned, running, failed, confirm]
    assert {error_of(refused) for refused in refusals} == {(409, "invalid_state")}


async def test_hashes_that_others_send_during_the_check_do_not_replace_checked_ones(
    creator: CreatorClient, proxy: FaultProxy
) -> None:
    request_id = await creator.prepared()
    txs = await creator.paid(request_id)

    async def meddle(_request: Request, forward: Forward) -> Answer | None:
        nonsense = [{"id": txs[1]["id"], "hash": a_word("nonsense")}]
        assert (await creator.confirm(request_id, nonsense)).status_code == 200
        return await forward()

    proxy.fail("eth_getTransactionReceipt", meddle)
    started = await creator.finalize(request_id, txs)
    record = await creator.record(request_id)
    await creator.rig.settle()

    assert started.json()["status"] == "finalize_in_progress"
    assert record["txs"] == txs
    assert await status_of(creator, request_id) == "metadata_update_pending"


@pytest.mark.deviation(14)
async def test_hashes_that_a_stranger_confirmed_give_way_to_those_of_the_creator(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    request_id = await creator.prepared()
    txs = await creator.paid(request_id)
    await creator.confirm(request_id, txs)
    nonsense = [{"id": tx["id"], "hash": a_word(f"nonsense {tx['id']}")} for tx in txs]

    await creator.confirm(request_id, nonsense)
    bare = await creator.finalize(request_id)
    with_hashes = await creator.finalize(request_id, txs)
    late = await creator.confirm(request_id, nonsense)
    await rig.settle()

    assert error_of(bare) == (425, "tx_pending")
    assert with_hashes.json()["status"] == "finalize_in_progress"
    assert error_of(late) == (409, "invalid_state")
    assert await status_of(creator, request_id) == "metadata_update_pending"


async def test_concurrent_finalizations_agree(creator: CreatorClient) -> None:
    request_id = await creator.prepared()
    txs = await creator.paid(request_id)
    await creator.confirm(request_id, txs)

    starts = await asyncio.gather(*(creator.finalize(request_id, txs) for _ in range(4)))
    await creator.rig.settle()
    updates = (await creator.record(request_id))["metadataUpdateTxPlan"]
    await creator.confirm(request_id, await creator.execute(updates))
    ends = await asyncio.gather(*(creator.finalize(request_id) for _ in range(4)))

    assert {answer.json()["status"] for answer in starts} == {"finalize_in_progress"}
    assert {answer.json()["status"] for answer in ends} == {"finalized"}


async def test_a_request_that_moves_before_its_hashes_are_stored_is_read_again(
    creator: CreatorClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = creator.rig
    have_read = asyncio.Event()

    async def noted(tx: Transaction, request_id: str) -> CreationRequest | None:
        found = await load_request(tx, request_id)
        have_read.set()
        return found

    request_id = await creator.prepared()
    txs = await creator.paid(request_id)
    async with rig.database.writing() as tx:
        request = await load_request(tx, request_id)
        assert request is not None
        monkeypatch.setattr(finalize, "load_request", noted)
        asked = asyncio.create_task(creator.finalize(request_id, txs))
        await asyncio.wait_for(have_read.wait(), READ_WITHIN_S)
        assert await record_txs(
            tx, request, [PlanTx(each["id"], parse_bytes32(each["hash"])) for each in txs], NOW_MS
        )
        assert await move_request(tx, request, RequestTrigger.FINALIZE, NOW_MS)

    assert (await asked).json() == {"requestId": request_id, "status": "finalize_in_progress"}
    assert (await creator.record(request_id))["txs"] == txs
