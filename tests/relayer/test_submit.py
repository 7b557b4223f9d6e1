import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.relayer.rig import Body, OwnerClient, Station, an_approval, error_of
from tests.relayer.strange_safes import a_strange_safe, make_strange
from tests.rigs.fault_proxy import FaultProxy, honest, lose_answer, lose_request, refuse
from tests.rigs.values import an_address

from foretell.domain.contracts.calldata import Approve, Transfer
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.errors.relayer import NonceMismatch
from foretell.domain.errors.storage import StoreUnavailable
from foretell.domain.relay.request import RelayState
from foretell.domain.values.hexadecimal import Address
from foretell.relayer import progress, submit
from foretell.relayer.body import parse_wish
from foretell.relayer.checks import JudgedWish, judge
from foretell.relayer.context import RelayerServices
from foretell.relayer.submit import accept
from foretell.store.outbox.relays import record_relay_move
from foretell.store.outbox.transactions import load_tx

pytestmark = pytest.mark.anyio

BROADCAST: Final = "eth_sendRawTransaction"
VIEWS_OF_A_SAFE: Final = 3


async def allowance(owner: OwnerClient) -> int:
    """Return what the wallet's approvals have come to."""
    sandbox = owner.station.sandbox
    return await sandbox.reader.allowance_units(owner.safe, sandbox.deployment.exchange)


async def approval_body(owner: OwnerClient, units: int = 7, **fields: Any) -> Body:
    collateral = owner.station.sandbox.deployment.collateral
    return await owner.call_body(collateral, an_approval(owner.station, units), **fields)


async def test_a_wallet_is_made_for_whoever_signs_for_it(
    station: Station, newcomer: OwnerClient
) -> None:
    answer = await newcomer.submit(newcomer.create_body())
    assert answer.status_code == 200, answer.text
    reply = answer.json()
    assert reply["state"] == "STATE_EXECUTED"
    assert reply["hash"] == reply["transactionHash"]
    await station.settle()
    state = await station.sandbox.reader.safe(newcomer.safe)
    assert state is not None
    assert (state.owners, state.threshold) == ((newcomer.address,), 1)
    assert (await station.transaction(reply["transactionID"]))["state"] == "STATE_CONFIRMED"


async def test_a_wallet_is_made_once_however_often_it_is_wished_for(
    station: Station, newcomer: OwnerClient
) -> None:
    before = await station.sent_count()
    first = await newcomer.submitted(newcomer.create_body())
    assert await newcomer.submitted(newcomer.create_body()) == first
    await station.settle()
    assert await newcomer.submitted(newcomer.create_body()) == first
    assert await station.sent_count() == before + 1


async def test_a_wallet_that_others_made_is_not_made_again(
    station: Station, newcomer: OwnerClient
) -> None:
    await station.sandbox.make_safe(newcomer.account)
    status, words = error_of(await newcomer.submit(newcomer.create_body()))
    assert (status, words.partition(":")[0]) == (400, "wallet_exists")


@pytest.mark.spec(88, 110)
async def test_what_the_nonce_route_says_is_accepted_one_after_the_other(
    station: Station, owner: OwnerClient
) -> None:
    for units in (1, 2, 3):
        await owner.submitted(await approval_body(owner, units))
        await station.settle()
        assert await owner.next_nonce() == str(await owner.safe_nonce()) == str(units)
        assert await allowance(owner) == units


@pytest.mark.spec(88, 110)
async def test_what_is_under_way_counts_in_the_next_nonce_and_waits_for_its_turn(
    station: Station, owner: OwnerClient
) -> None:
    await station.automine(is_on=False)
    first = await owner.submitted(await approval_body(owner, 1))
    answers = []
    for units, nonce in ((2, "1"), (3, "2")):
        assert await owner.next_nonce() == nonce
        answers.append((await owner.submit(await approval_body(owner, units))).json())
    assert [answer["state"] for answer in answers] == ["STATE_NEW", "STATE_NEW"]
    assert [answer["transactionHash"] for answer in answers] == [None, None]
    assert (await station.transaction(first))["state"] == "STATE_EXECUTED"
    await station.settle()
    states = [(await station.transaction(each["transactionID"]))["state"] for each in answers]
    assert states == ["STATE_CONFIRMED", "STATE_CONFIRMED"]
    assert (await owner.safe_nonce(), await allowance(owner)) == (3, 3)


@pytest.mark.spec(93)
@pytest.mark.parametrize("nonce", ["0", "2", "9223372036854775807"])
async def test_another_nonce_is_refused_with_the_one_that_is_wanted(
    station: Station, owner: OwnerClient, nonce: str
) -> None:
    await owner.submitted(await approval_body(owner, 1))
    await station.settle()
    collateral = station.sandbox.deployment.collateral
    answer = await owner.submit(owner.body(collateral, an_approval(station, 5).encode(), nonce))
    assert error_of(answer) == (409, f"nonce_mismatch: expected 1, got {nonce}")
    assert answer.json()["details"] == {"expected": 1, "got": int(nonce)}


@pytest.mark.spec(93)
async def test_of_several_with_one_nonce_at_once_one_is_taken(
    station: Station, owner: OwnerClient
) -> None:
    before = await station.sent_count()
    bodies = [await approval_body(owner, units) for units in range(1, 9)]
    answers = await asyncio.gather(*map(owner.submit, bodies))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    told = {error_of(answer)[1] for answer in answers if answer.status_code == 409}
    assert told == {"nonce_mismatch: expected 1, got 0"}
    await station.settle()
    assert await station.sent_count() == before + 1
    assert await owner.safe_nonce() == 1


async def test_the_same_wish_at_once_and_later_is_one_transaction(
    station: Station, owner: OwnerClient
) -> None:
    before = await station.sent_count()
    body = await approval_body(owner)
    answers = await asyncio.gather(*[owner.submit(body) for _ in range(5)])
    ids = {answer.json()["transactionID"] for answer in answers}
    assert len(ids) == 1
    await station.settle()
    assert {await owner.submitted(body)} == ids
    assert await station.sent_count() == before + 1


async def barred(services: RelayerServices, judged: JudgedWish) -> None:
    """Let both processes look before either writes."""
    del services, judged
    await asyncio.sleep(0.2)


async def test_of_two_processes_that_look_at_once_one_writes(
    station: Station, owner: OwnerClient, twin: Station
) -> None:
    bodies = [json.dumps(await approval_body(owner, units)).encode() for units in (1, 2, 2)]
    wishes = [judge(station.services, parse_wish(body)) for body in bodies]
    pairs = zip((station, twin, twin), wishes, strict=True)
    taken = await asyncio.gather(
        *(accept(each.services, wish, owner.address, barred) for each, wish in pairs),
        return_exceptions=True,
    )
    refused = [each for each in taken if isinstance(each, NonceMismatch)]
    assert 1 <= len(refused) <= 2
    assert all(each.details == {"expected": 1, "got": 0} for each in refused)
    await station.settle()
    assert await owner.safe_nonce() == 1


async def test_the_same_wish_in_two_processes_is_one_request(
    station: Station, owner: OwnerClient, twin: Station
) -> None:
    wish = judge(station.services, parse_wish(json.dumps(await approval_body(owner)).encode()))
    one, two = await asyncio.gather(
        *(accept(each.services, wish, owner.address, barred) for each in (station, twin))
    )
    assert one.transaction_id == two.transaction_id


async def test_only_so_many_wait_for_one_wallet(station: Station, owner: OwnerClient) -> None:
    station.change(open_per_wallet_max=2)
    await station.automine(is_on=False)
    for units in (1, 2):
        await owner.submitted(await approval_body(owner, units))
    answer = await owner.submit(await approval_body(owner, 3))
    status, words = error_of(answer)
    assert (status, words.partition(":")[0]) == (503, "too_many_queued")
    assert answer.headers["retry-after"] == "1"


async def test_wallets_do_not_wait_for_each_other(station: Station, owner: OwnerClient) -> None:
    other = await station.owner("another owner")
    await other.deploy()
    await station.automine(is_on=False)
    for each in (owner, other):
        answer = await each.submit(await approval_body(each))
        assert answer.json()["state"] == "STATE_EXECUTED"


@pytest.mark.spec(95)
async def test_what_reverts_is_not_sent_and_leaves_its_nonce_free(
    station: Station, owner: OwnerClient
) -> None:
    wei, sent = await station.relayer_wei(), await station.sent_count()
    collateral = station.sandbox.deployment.collateral
    body = await owner.call_body(collateral, Transfer(an_address("a friend"), 1))
    status, words = error_of(await owner.submit(body))
    assert (status, words.partition(":")[0]) == (502, "execution_failed")
    assert "InsufficientBalance" in words
    assert (await station.relayer_wei(), await station.sent_count()) == (wei, sent)
    assert await owner.next_nonce() == "0"
    (refused,) = (await owner.get("/transactions")).json()[:1]
    assert (refused["state"], refused["transactionHash"]) == ("STATE_INVALID", None)
    assert refused["failureReason"] in words
    await owner.fund(1)
    assert await owner.submitted(body) != refused["transactionID"]


async def test_a_bundle_that_reverts_is_not_sent(station: Station, owner: OwnerClient) -> None:
    sent = await station.sent_count()
    deployment = station.sandbox.deployment
    calls = [
        InnerCall(deployment.collateral, an_approval(station).encode()),
        InnerCall(deployment.collateral, Transfer(an_address("a friend"), 1).encode()),
    ]
    status, words = error_of(await owner.submit(await owner.bundle_body(calls)))
    assert status == 502
    assert words.endswith("GS013")
    assert await station.sent_count() == sent
    assert await allowance(owner) == 0


async def test_a_bundle_does_all_its_calls(station: Station, owner: OwnerClient) -> None:
    deployment = station.sandbox.deployment
    calls = [
        InnerCall(deployment.collateral, an_approval(station).encode()),
        InnerCall(deployment.collateral, Approve(deployment.conditional_tokens, 5).encode()),
    ]
    await owner.submitted(await owner.bundle_body(calls))
    await station.settle()
    assert await allowance(owner) == an_approval(station).amount_units
    reader, tokens = station.sandbox.reader, deployment.conditional_tokens
    assert await reader.allowance_units(owner.safe, tokens) == 5


async def test_a_wallet_that_burns_gas_is_not_served(station: Station, owner: OwnerClient) -> None:
    wei = await station.relayer_wei()
    await make_strange(station.sandbox, owner.safe, a_strange_safe(owner.address, None))
    status, words = error_of(await owner.submit(await approval_body(owner)))
    assert (status, words.partition(":")[0]) == (502, "execution_failed")
    assert await station.relayer_wei() == wei


@pytest.mark.parametrize("fault", [lose_request, lose_answer])
async def test_a_broadcast_that_nobody_answers_is_sent_once(
    shaky_station: Station, proxy: FaultProxy, fault: Any
) -> None:
    owner = await shaky_station.owner("an owner")
    await owner.deploy()
    proxy.fail(BROADCAST, fault)
    answer = await owner.submit(await approval_body(owner))
    assert answer.status_code == 200, answer.text
    assert answer.json()["state"] == "STATE_NEW"
    assert answer.json()["transactionHash"] is not None
    await shaky_station.settle()
    assert (await owner.safe_nonce(), await allowance(owner)) == (1, 7)


async def test_a_fault_before_anything_is_stored_frees_the_nonce(
    shaky_station: Station, proxy: FaultProxy
) -> None:
    owner = await shaky_station.owner("an owner")
    await owner.deploy()
    body = await approval_body(owner)
    proxy.fail("eth_call", *[honest] * VIEWS_OF_A_SAFE, *[lose_request] * 3)
    status, words = error_of(await owner.submit(body))
    assert (status, words.partition(":")[0]) == (502, "chain_unavailable")
    assert await owner.next_nonce() == "0"
    await owner.submitted(body)


async def test_a_node_that_refuses_is_told_of_without_its_address(
    shaky_station: Station, proxy: FaultProxy
) -> None:
    owner = await shaky_station.owner("an owner")
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
    shaky_station: Station, proxy: FaultProxy
) -> None:
    owner = await shaky_station.owner("an owner")
    await owner.deploy()
    proxy.fail(BROADCAST, refuse("transaction underpriced"))
    proxy.fail("eth_feeHistory", honest, *[lose_request] * 3)
    answer = await owner.submit(await approval_body(owner))
    assert answer.status_code == 200, answer.text
    assert answer.json()["state"] == "STATE_NEW"
    await shaky_station.settle()
    assert await owner.safe_nonce() == 1


def failing_once(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return the work with a store that is gone when it is done first, and back ever after."""
    faults = [StoreUnavailable("the connection was lost")]

    async def done(*arguments: object) -> object:
        if faults:
            raise faults.pop()
        return await work(*arguments)

    return done


async def test_a_store_that_fails_after_the_broadcast_undoes_nothing(
    station: Station, owner: OwnerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await station.sent_count()
    body = await approval_body(owner)
    monkeypatch.setattr(progress, "record_relay_move", failing_once(record_relay_move))
    answer = await owner.submit(body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["state"] == "STATE_NEW"
    assert answer.json()["transactionHash"] is not None
    transaction_id = answer.json()["transactionID"]
    assert await owner.submitted(body) == transaction_id
    await station.settle()
    assert (await station.transaction(transaction_id))["state"] == "STATE_CONFIRMED"
    assert await owner.submitted(body) == transaction_id
    assert (await allowance(owner), await station.sent_count()) == (7, before + 1)


async def test_what_may_have_been_sent_is_not_refused_while_the_store_is_gone(
    station: Station, owner: OwnerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await station.sent_count()
    body = await approval_body(owner)
    monkeypatch.setattr(progress, "record_relay_move", failing_once(record_relay_move))
    monkeypatch.setattr(submit, "load_tx", failing_once(load_tx))
    assert error_of(await owner.submit(body))[0] == 503
    (record,) = (await owner.get("/transactions")).json()[:1]
    assert record["state"] == "STATE_NEW"
    assert await owner.submitted(body) == record["transactionID"]
    await station.settle()
    assert (await station.transaction(record["transactionID"]))["state"] == "STATE_CONFIRMED"
    assert (await allowance(owner), await station.sent_count()) == (7, before + 1)


HOSTILE_TARGETS: Final = ["the wallet itself", "a stranger", "the factory", "the relayer"]


@pytest.mark.spec(94)
@pytest.mark.parametrize("target", HOSTILE_TARGETS)
@pytest.mark.parametrize("operation", [0, 1])
async def test_only_what_trading_needs_is_ever_sent(
    station: Station, owner: OwnerClient, target: str, operation: int
) -> None:
    sent = await station.sent_count()
    targets: dict[str, Address] = {
        "the wallet itself": owner.safe,
        "a stranger": an_address("a stranger"),
        "the factory": station.sandbox.deployment.safe_factory,
        "the relayer": station.services.sender.address,
    }
    calldata = bytes.fromhex("610b5925") + bytes(32)
    body = owner.body(targets[target], calldata, await owner.next_nonce(), operation)
    status, words = error_of(await owner.submit(body))
    assert (status, words.partition(":")[0]) == (400, "invalid_field to")
    assert await station.sent_count() == sent


async def test_a_request_is_sent_with_no_more_gas_than_stated(
    station: Station, owner: OwnerClient
) -> None:
    transaction_id = await owner.submitted(await approval_body(owner))
    request, carrier = await station.relay(transaction_id), await station.carrier(transaction_id)
    assert carrier.gas == request.gas
    await station.settle()
    (receipt,) = await station.sandbox.reader.receipts([carrier.newest.tx_hash])
    assert receipt is not None
    assert 2 * receipt.gas_used < carrier.gas
    assert (await station.relay(transaction_id)).state is RelayState.CONFIRMED
