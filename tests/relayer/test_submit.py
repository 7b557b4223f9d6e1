import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.relayer.rig import Body, OwnerClient, RelayerRig, an_approval, error_of
from tests.relayer.strange_safes import a_strange_safe, make_strange
from tests.rigs.fault_proxy import (
    Answer,
    FaultProxy,
    Forward,
    Request,
    change,
    honest,
    lose_answer,
    lose_request,
    refuse,
)
from tests.rigs.values import an_address

from foretell.domain.contracts.calldata import Approve, Transfer
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.errors.relayer import NonceMismatch
from foretell.domain.errors.storage import StoreUnavailable
from foretell.domain.relay.request import RelayState
from foretell.domain.values.hexadecimal import Address
from foretell.relayer import progress, submit
from foretell.relayer.body import parse_submission
from foretell.relayer.checks import CheckedSubmission, checked_submission
from foretell.relayer.context import RelayerContext
from foretell.relayer.submit import Check, accept
from foretell.store.outbox.relays import record_relay_move
from foretell.store.outbox.transactions import load_tx

pytestmark = pytest.mark.anyio

READ_WITHIN_S: Final = 60.0

BROADCAST: Final = "eth_sendRawTransaction"
VIEWS_OF_A_SAFE: Final = 3


async def allowance(owner: OwnerClient) -> int:
    """Return the wallet's allowance for the exchange."""
    sandbox = owner.rig.sandbox
    return await sandbox.reader.allowance_units(owner.safe, sandbox.deployment.exchange)


async def approval_body(owner: OwnerClient, units: int = 7, **fields: Any) -> Body:
    collateral = owner.rig.sandbox.deployment.collateral
    return await owner.call_body(collateral, an_approval(owner.rig, units), **fields)


async def test_a_wallet_is_deployed_for_the_owner_that_signs_for_it(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    answer = await newcomer.submit(newcomer.create_body())
    assert answer.status_code == 200, answer.text
    reply = answer.json()
    assert reply["state"] == "STATE_EXECUTED"
    assert reply["hash"] == reply["transactionHash"]
    await rig.settle()
    state = await rig.sandbox.reader.safe(newcomer.safe)
    assert state is not None
    assert (state.owners, state.threshold) == ((newcomer.address,), 1)
    assert (await rig.transaction(reply["transactionID"]))["state"] == "STATE_CONFIRMED"


async def test_a_wallet_is_deployed_once_however_often_it_is_submitted(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    before = await rig.sent_count()
    first = await newcomer.submitted(newcomer.create_body())
    assert await newcomer.submitted(newcomer.create_body()) == first
    await rig.settle()
    assert await newcomer.submitted(newcomer.create_body()) == first
    assert await rig.sent_count() == before + 1


async def test_a_wallet_that_others_deployed_is_not_deployed_again(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    await rig.sandbox.make_safe(newcomer.account)
    status, words = error_of(await newcomer.submit(newcomer.create_body()))
    assert (status, words.partition(":")[0]) == (400, "wallet_exists")


@pytest.mark.spec(88, 110)
async def test_nonces_of_the_nonce_route_are_accepted_one_after_the_other(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    for units in (1, 2, 3):
        await owner.submitted(await approval_body(owner, units))
        await rig.settle()
        assert await owner.next_nonce() == str(await owner.safe_nonce()) == str(units)
        assert await allowance(owner) == units


@pytest.mark.spec(88, 110)
async def test_requests_in_progress_count_for_the_next_nonce_and_are_sent_in_order(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    await rig.automine(is_on=False)
    first = await owner.submitted(await approval_body(owner, 1))
    answers = []
    for units, nonce in ((2, "1"), (3, "2")):
        assert await owner.next_nonce() == nonce
        answers.append((await owner.submit(await approval_body(owner, units))).json())
    assert [answer["state"] for answer in answers] == ["STATE_NEW", "STATE_NEW"]
    assert [answer["transactionHash"] for answer in answers] == [None, None]
    assert (await rig.transaction(first))["state"] == "STATE_EXECUTED"
    await rig.settle()
    states = [(await rig.transaction(each["transactionID"]))["state"] for each in answers]
    assert states == ["STATE_CONFIRMED", "STATE_CONFIRMED"]
    assert (await owner.safe_nonce(), await allowance(owner)) == (3, 3)


@pytest.mark.case("D-01")
@pytest.mark.spec(93)
@pytest.mark.parametrize("nonce", ["0", "2", "9223372036854775807"])
async def test_a_wrong_nonce_is_refused_with_the_expected_one(
    rig: RelayerRig, owner: OwnerClient, nonce: str
) -> None:
    await owner.submitted(await approval_body(owner, 1))
    await rig.settle()
    collateral = rig.sandbox.deployment.collateral
    answer = await owner.submit(owner.body(collateral, an_approval(rig, 5).encode(), nonce))
    assert error_of(answer) == (409, f"nonce_mismatch: expected 1, got {nonce}")
    assert answer.json()["details"] == {"expected": 1, "got": int(nonce)}


@pytest.mark.case("D-01")
@pytest.mark.spec(93)
async def test_one_of_several_concurrent_submissions_with_one_nonce_is_accepted(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    before = await rig.sent_count()
    bodies = [await approval_body(owner, units) for units in range(1, 9)]
    answers = await asyncio.gather(*map(owner.submit, bodies))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    refusals = {error_of(answer)[1] for answer in answers if answer.status_code == 409}
    assert refusals == {"nonce_mismatch: expected 1, got 0"}
    await rig.settle()
    assert await rig.sent_count() == before + 1
    assert await owner.safe_nonce() == 1


@pytest.mark.case("C-10")
async def test_the_same_submission_at_once_and_later_is_one_transaction(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    before = await rig.sent_count()
    body = await approval_body(owner)
    answers = await asyncio.gather(*[owner.submit(body) for _ in range(5)])
    ids = {answer.json()["transactionID"] for answer in answers}
    assert len(ids) == 1
    await rig.settle()
    assert {await owner.submitted(body)} == ids
    assert await rig.sent_count() == before + 1


def barred(processes: int) -> Check:
    """Return a check that waits until so many processes have read: none writes before."""
    readers: set[int] = set()
    have_read = asyncio.Event()

    async def wait(context: RelayerContext, judged: CheckedSubmission) -> None:
        del judged
        readers.add(id(context))
        if len(readers) == processes:
            have_read.set()
        async with asyncio.timeout(READ_WITHIN_S):
            await have_read.wait()

    return wait


@pytest.mark.case("D-01")
async def test_one_of_two_concurrent_processes_stores_a_request(
    rig: RelayerRig, owner: OwnerClient, twin: RelayerRig
) -> None:
    bodies = [json.dumps(await approval_body(owner, units)).encode() for units in (1, 2, 2)]
    submissions = [checked_submission(rig.context, parse_submission(body)) for body in bodies]
    both = barred(2)
    pairs = zip((rig, twin, twin), submissions, strict=True)
    taken = await asyncio.gather(
        *(accept(each.context, submission, owner.address, both) for each, submission in pairs),
        return_exceptions=True,
    )
    refused = [each for each in taken if isinstance(each, NonceMismatch)]
    assert 1 <= len(refused) <= 2
    assert all(each.details == {"expected": 1, "got": 0} for each in refused)
    await rig.settle()
    assert await owner.safe_nonce() == 1


async def test_the_same_submission_in_two_processes_is_one_request(
    rig: RelayerRig, owner: OwnerClient, twin: RelayerRig
) -> None:
    submission = checked_submission(
        rig.context, parse_submission(json.dumps(await approval_body(owner)).encode())
    )
    both = barred(2)
    one, two = await asyncio.gather(
        *(accept(each.context, submission, owner.address, both) for each in (rig, twin))
    )
    assert one.transaction_id == two.transaction_id


@pytest.mark.case("D-07")
async def test_a_confirmed_request_is_not_sent_again_by_a_node_that_lacks_its_block(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    """A finding: a second transaction was mined and reverted, and the confirmed call was reported as failed."""
    owner = await shaky_rig.owner("an owner")
    await owner.deploy()
    before = await shaky_rig.sent_count()
    block = hex(int(await shaky_rig.sandbox.rpc.send("eth_blockNumber"), 16))
    body = await approval_body(owner)
    first = await owner.submitted(body)
    await shaky_rig.settle()

    async def as_before(request: Request, _forward: Forward) -> Answer:
        params = [request["params"][0], block]
        result = await shaky_rig.sandbox.rpc.send(request["method"], *params)
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}

    proxy.fail_always("eth_call", as_before)
    proxy.fail_always("eth_blockNumber", change(lambda _: block))
    assert (await owner.submit(body)).status_code == 502
    proxy.heal()
    assert await owner.submitted(body) == first
    assert await shaky_rig.sent_count() == before + 1


EXECUTE: Final = "0x6a761202"
NONCE: Final = "0xaffed0e0"


@pytest.mark.case("D-07")
async def test_a_revert_at_a_node_that_lacks_the_wallets_last_transaction_is_no_fault_of_the_request(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    """A finding: a request that had been accepted was refused for it."""
    owner = await shaky_rig.owner("an owner")
    await owner.deploy()
    await owner.submitted(await approval_body(owner))
    await shaky_rig.settle()
    body = await approval_body(owner, 8)
    reverts: list[Request] = []

    async def fall_behind(request: Request, forward: Forward) -> Answer | None:
        calldata = request["params"][0]["data"]
        if calldata.startswith(EXECUTE):
            reverts.append(request)
            return await refuse("execution reverted: GS026", 3)(request, forward)
        if calldata == NONCE and reverts:
            return await change(lambda _: "0x" + "00" * 32)(request, forward)
        return await forward()

    proxy.fail_always("eth_call", fall_behind)
    answer = await owner.submit(body)
    assert (answer.status_code, len(reverts)) == (502, 1)
    assert "contradict each other" in answer.text
    proxy.heal()
    await owner.submitted(body)
    await shaky_rig.settle()
    assert await owner.safe_nonce() == 2


async def test_the_number_of_waiting_requests_of_a_wallet_is_limited(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    rig.change(open_per_wallet_max=2)
    await rig.automine(is_on=False)
    for units in (1, 2):
        await owner.submitted(await approval_body(owner, units))
    answer = await owner.submit(await approval_body(owner, 3))
    status, words = error_of(answer)
    assert (status, words.partition(":")[0]) == (503, "too_many_queued")
    assert answer.headers["retry-after"] == "1"


@pytest.mark.case("D-13")
@pytest.mark.deviation(16)
async def test_an_owner_spends_the_relayer_s_gas_for_so_many_transactions_a_day(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    """The wallet's deployment is the first; those of other owners, and those never sent, do not count."""
    rig.change(relays_per_owner_max=2)
    other = await rig.owner("another owner")
    await other.deploy()
    reverting = await owner.call_body(
        rig.sandbox.deployment.collateral, Transfer(an_address("bob"), 10**30)
    )
    assert (await owner.submit(reverting)).status_code == 502
    first = await approval_body(owner, 1)
    transaction_id = await owner.submitted(first)
    await rig.settle()
    rig.clock.move(60_000)

    refused = await owner.submit(await approval_body(owner, 2))
    again = await owner.submitted(first)
    wait_s = int(refused.headers["retry-after"])
    rig.clock.move((wait_s - 1) * 1000)
    still = await owner.submit(await approval_body(owner, 2))
    rig.clock.move(1000)

    assert (refused.status_code, refused.json()["code"]) == (429, "owner_limit_reached")
    assert (still.status_code, again) == (429, transaction_id)
    assert (await owner.submit(await approval_body(owner, 2))).status_code == 200


async def test_wallets_do_not_wait_for_each_other(rig: RelayerRig, owner: OwnerClient) -> None:
    other = await rig.owner("another owner")
    await other.deploy()
    await rig.automine(is_on=False)
    for each in (owner, other):
        answer = await each.submit(await approval_body(each))
        assert answer.json()["state"] == "STATE_EXECUTED"


@pytest.mark.case("D-13")
@pytest.mark.spec(95)
async def test_a_call_that_reverts_is_not_sent_and_its_nonce_stays_free(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    wei, sent = await rig.relayer_wei(), await rig.sent_count()
    collateral = rig.sandbox.deployment.collateral
    body = await owner.call_body(collateral, Transfer(an_address("a friend"), 1))
    status, words = error_of(await owner.submit(body))
    assert (status, words.partition(":")[0]) == (502, "execution_failed")
    assert "InsufficientBalance" in words
    assert (await rig.relayer_wei(), await rig.sent_count()) == (wei, sent)
    assert await owner.next_nonce() == "0"
    (refused,) = (await owner.get("/transactions")).json()[:1]
    assert (refused["state"], refused["transactionHash"]) == ("STATE_INVALID", None)
    assert refused["failureReason"] in words
    await owner.fund(1)
    assert await owner.submitted(body) != refused["transactionID"]


async def test_a_bundle_that_reverts_is_not_sent(rig: RelayerRig, owner: OwnerClient) -> None:
    sent = await rig.sent_count()
    deployment = rig.sandbox.deployment
    calls = [
        InnerCall(deployment.collateral, an_approval(rig).encode()),
        InnerCall(deployment.collateral, Transfer(an_address("a friend"), 1).encode()),
    ]
    status, words = error_of(await owner.submit(await owner.bundle_body(calls)))
    assert status == 502
    assert words.endswith("GS013")
    assert await rig.sent_count() == sent
    assert await allowance(owner) == 0


async def test_a_bundle_does_all_its_calls(rig: RelayerRig, owner: OwnerClient) -> None:
    deployment = rig.sandbox.deployment
    calls = [
        InnerCall(deployment.collateral, an_approval(rig).encode()),
        InnerCall(deployment.collateral, Approve(deployment.conditional_tokens, 5).encode()),
    ]
    await owner.submitted(await owner.bundle_body(calls))
    await rig.settle()
    assert await allowance(owner) == an_approval(rig).amount_units
    reader, tokens = rig.sandbox.reader, deployment.conditional_tokens
    assert await reader.allowance_units(owner.safe, tokens) == 5


async def test_a_wallet_that_burns_gas_is_not_served(rig: RelayerRig, owner: OwnerClient) -> None:
    wei = await rig.relayer_wei()
    await make_strange(rig.sandbox, owner.safe, a_strange_safe(owner.address, None))
    status, words = error_of(await owner.submit(await approval_body(owner)))
    assert (status, words.partition(":")[0]) == (502, "execution_failed")
    assert await rig.relayer_wei() == wei


@pytest.mark.parametrize("fault", [lose_request, lose_answer])
async def test_a_broadcast_without_an_answer_is_sent_once(
    shaky_rig: RelayerRig, proxy: FaultProxy, fault: Any
) -> None:
    owner = await shaky_rig.owner("an owner")
    await owner.deploy()
    proxy.fail(BROADCAST, fault)
    answer = await owner.submit(await approval_body(owner))
    assert answer.status_code == 200, answer.text
    assert answer.json()["state"] == "STATE_NEW"
    assert answer.json()["transactionHash"] is not None
    await shaky_rig.settle()
    assert (await owner.safe_nonce(), await allowance(owner)) == (1, 7)


async def test_a_fault_before_anything_is_stored_frees_the_nonce(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    owner = await shaky_rig.owner("an owner")
    await owner.deploy()
    body = await approval_body(owner)
    proxy.fail("eth_call", *[honest] * VIEWS_OF_A_SAFE, *[lose_request] * 3)
    status, words = error_of(await owner.submit(body))
    assert (status, words.partition(":")[0]) == (502, "chain_unavailable")
    assert await owner.next_nonce() == "0"
    await owner.submitted(body)


async def test_a_refusal_of_the_node_is_reported_without_its_address(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    owner = await shaky_rig.owner("an owner")
    await owner.deploy()
    body = await approval_body(owner)
    limited = refuse("quota of https://user:secret@node.example/v3/key reached", -32005)
    proxy.fail("eth_call", *[honest] * VIEWS_OF_A_SAFE, limited)
    status, words = error_of(await owner.submit(body))
    assert status == 502
    assert words == "execution_failed: quota of (address) reached"
    (refused,) = (await owner.get("/transactions")).json()[:1]
    assert refused["failureReason"] == "quota of (address) reached"


async def test_a_fault_after_the_row_is_stored_does_not_undo_it(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    owner = await shaky_rig.owner("an owner")
    await owner.deploy()
    proxy.fail(BROADCAST, refuse("transaction underpriced"))
    proxy.fail("eth_feeHistory", *[lose_request] * 3)
    answer = await owner.submit(await approval_body(owner))
    assert answer.status_code == 200, answer.text
    assert answer.json()["state"] == "STATE_NEW"
    await shaky_rig.settle()
    assert await owner.safe_nonce() == 1


def failing_once(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that fails at its first call, as if the store were unavailable."""
    faults = [StoreUnavailable("the connection was lost")]

    async def done(*arguments: object) -> object:
        if faults:
            raise faults.pop()
        return await work(*arguments)

    return done


async def test_a_store_that_fails_after_the_broadcast_undoes_nothing(
    rig: RelayerRig, owner: OwnerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await rig.sent_count()
    body = await approval_body(owner)
    monkeypatch.setattr(progress, "record_relay_move", failing_once(record_relay_move))
    answer = await owner.submit(body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["state"] == "STATE_NEW"
    assert answer.json()["transactionHash"] is not None
    transaction_id = answer.json()["transactionID"]
    assert await owner.submitted(body) == transaction_id
    await rig.settle()
    assert (await rig.transaction(transaction_id))["state"] == "STATE_CONFIRMED"
    assert await owner.submitted(body) == transaction_id
    assert (await allowance(owner), await rig.sent_count()) == (7, before + 1)


async def test_a_request_that_may_have_been_sent_is_not_refused_while_the_store_fails(
    rig: RelayerRig, owner: OwnerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await rig.sent_count()
    body = await approval_body(owner)
    monkeypatch.setattr(progress, "record_relay_move", failing_once(record_relay_move))
    monkeypatch.setattr(submit, "load_tx", failing_once(load_tx))
    assert error_of(await owner.submit(body))[0] == 503
    (record,) = (await owner.get("/transactions")).json()[:1]
    assert record["state"] == "STATE_NEW"
    assert await owner.submitted(body) == record["transactionID"]
    await rig.settle()
    assert (await rig.transaction(record["transactionID"]))["state"] == "STATE_CONFIRMED"
    assert (await allowance(owner), await rig.sent_count()) == (7, before + 1)


HOSTILE_TARGETS: Final = ["the wallet itself", "another account", "the factory", "the relayer"]


@pytest.mark.spec(94)
@pytest.mark.parametrize("target", HOSTILE_TARGETS)
@pytest.mark.parametrize("operation", [0, 1])
async def test_only_calls_that_trading_needs_are_sent(
    rig: RelayerRig, owner: OwnerClient, target: str, operation: int
) -> None:
    sent = await rig.sent_count()
    targets: dict[str, Address] = {
        "the wallet itself": owner.safe,
        "another account": an_address("another account"),
        "the factory": rig.sandbox.deployment.safe_factory,
        "the relayer": rig.context.sender.address,
    }
    calldata = bytes.fromhex("610b5925") + bytes(32)
    body = owner.body(targets[target], calldata, await owner.next_nonce(), operation)
    status, words = error_of(await owner.submit(body))
    assert (status, words.partition(":")[0]) == (400, "invalid_field to")
    assert await rig.sent_count() == sent


async def test_a_request_is_sent_with_no_more_gas_than_stated(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    transaction_id = await owner.submitted(await approval_body(owner))
    request, carrier = await rig.relay(transaction_id), await rig.carrier(transaction_id)
    assert carrier.gas == request.gas
    await rig.settle()
    receipt = await rig.sandbox.receipt(carrier.newest.tx_hash)
    assert 2 * receipt.gas_used < carrier.gas
    assert (await rig.relay(transaction_id)).state is RelayState.CONFIRMED
