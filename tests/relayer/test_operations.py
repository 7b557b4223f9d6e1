import asyncio
from typing import Final

import pytest
import sqlalchemy as sa
from tests.relayer.rig import UNIT, OwnerClient, RelayerRig, an_operator_approval, changed, error_of
from tests.relayer.strange_safes import FAILS_QUIETLY, a_strange_safe, make_strange
from tests.rigs.sandbox import SandboxMarket
from tests.rigs.values import an_address

from foretell.domain.contracts.calldata import (
    PRICE_NO,
    SAFE_TRANSFER_FROM,
    ClientCall,
    MergePositions,
    RedeemPositions,
    SetApprovalForAll,
    SplitPosition,
)
from foretell.domain.relay.request import CALL_GAS, OPEN
from foretell.domain.values.hexadecimal import checksum_address
from foretell.relayer.operations import Operation
from foretell.store.tables import relay_requests

pytestmark = pytest.mark.anyio

HELD: Final = 100 * UNIT
ROUTES: Final = ["redeem-position", "merge-position"]
SOON: Final = 0.2
SENT_WITHIN_S: Final = 60.0


def a_redemption(rig: RelayerRig, market: SandboxMarket) -> RedeemPositions:
    return RedeemPositions(rig.sandbox.deployment.collateral, market.condition_id)


def a_merge(rig: RelayerRig, market: SandboxMarket, units: int = HELD) -> MergePositions:
    return MergePositions(rig.sandbox.deployment.collateral, market.condition_id, units)


def calls_of(rig: RelayerRig, market: SandboxMarket) -> dict[str, ClientCall]:
    """Return the call of each operation."""
    return {
        "redeem-position": a_redemption(rig, market),
        "merge-position": a_merge(rig, market),
    }


async def give_away(rig: RelayerRig, owner: OwnerClient, token: int, units: int) -> None:
    """Transfer tokens out of a wallet without the relayer."""
    gift = SAFE_TRANSFER_FROM.encode(owner.safe, an_address("a friend"), token, units, b"")
    await rig.send_as(owner.safe, rig.sandbox.deployment.conditional_tokens, gift)


@pytest.mark.spec(80, 92)
async def test_a_redemption_pays_the_wallet_to_the_unit(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    await rig.sandbox.answer(market)
    before = await holder.collateral_units()
    async with rig.working():
        answer = await holder.redeem(await holder.tokens_body(a_redemption(rig, market)))
    assert answer.status_code == 200, answer.text
    reply = answer.json()
    assert set(reply) == {"txHash", "confirmations"}
    assert type(reply["confirmations"]) is int
    assert reply["confirmations"] >= 1
    receipt = await rig.sandbox.receipt(reply["txHash"])
    assert receipt.is_success
    assert await holder.collateral_units() == before + HELD


@pytest.mark.spec(81, 92)
async def test_a_merge_turns_complete_sets_into_collateral(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    body = await holder.tokens_body(a_merge(rig, market, 40 * UNIT))
    async with rig.working():
        answer = await holder.merge(body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["confirmations"] >= 1
    assert await holder.collateral_units() == 40 * UNIT
    tokens = [(holder.safe, str(token)) for token in market.tokens]
    assert await rig.sandbox.reader.token_units(tokens) == [60 * UNIT, 60 * UNIT]


@pytest.mark.spec(82)
@pytest.mark.parametrize("route", ROUTES)
async def test_an_operation_needs_an_api_key(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket, route: str
) -> None:
    body = await holder.tokens_body(calls_of(rig, market)[route])
    answer = await rig.http.post(f"/operations/{route}", json=body)
    assert error_of(answer)[0] == 401
    assert error_of(answer)[1].startswith("unauthorized: ")


@pytest.mark.case("D-09", "C-14")
@pytest.mark.spec(84)
@pytest.mark.parametrize("route", ROUTES)
async def test_an_owner_operates_only_its_own_wallet(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket, route: str
) -> None:
    other = await rig.owner("another account")
    body = await holder.tokens_body(calls_of(rig, market)[route])
    status, words = error_of(await other.post(f"/operations/{route}", body))
    assert (status, words.partition(":")[0]) == (400, "owner_address_mismatch")


@pytest.mark.spec(83)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kind", ["SAFE-CREATE", "PROXY", "WALLET", "safe", ""])
async def test_only_transactions_of_a_safe_are_operations(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket, route: str, kind: str
) -> None:
    body = await holder.tokens_body(calls_of(rig, market)[route], type=kind)
    status, words = error_of(await holder.post(f"/operations/{route}", body))
    assert (status, words.partition(":")[0]) == (400, "invalid_field type")


@pytest.mark.spec(85)
@pytest.mark.parametrize("route", ROUTES)
async def test_an_operation_is_a_call_of_the_conditional_tokens(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket, route: str
) -> None:
    deployment = rig.sandbox.deployment
    call = calls_of(rig, market)[route]
    for target in (deployment.collateral, deployment.exchange, deployment.multi_send, holder.safe):
        body = await holder.call_body(target, call)
        status, words = error_of(await holder.post(f"/operations/{route}", body))
        assert (status, words.partition(":")[0]) == (400, "invalid_field to")


@pytest.mark.spec(87, 94)
@pytest.mark.parametrize("route", ROUTES)
async def test_the_call_of_an_operation_fits_its_route(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket, route: str
) -> None:
    deployment = rig.sandbox.deployment
    fitting = calls_of(rig, market)
    others = [call for name, call in fitting.items() if name != route]
    others.append(SplitPosition(deployment.collateral, market.condition_id, UNIT))
    others.append(SetApprovalForAll(deployment.exchange, is_approved=True))
    nonce = await holder.next_nonce()
    calldata = [
        *(call.encode() for call in others),
        fitting[route].encode() + bytes(32),
        fitting[route].encode()[:-1],
        fitting[route].encode()[:4],
        b"",
    ]
    for data in calldata:
        body = holder.body(deployment.conditional_tokens, data, nonce)
        status, words = error_of(await holder.post(f"/operations/{route}", body))
        assert (status, words.partition(":")[0]) == (400, "invalid_field data")


@pytest.mark.parametrize(
    ("route", "wanted"),
    [("redeem-position", "redeemPositions"), ("merge-position", "mergePositions")],
)
async def test_a_call_of_another_operation_is_refused_with_the_expected_name(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket, route: str, wanted: str
) -> None:
    split = SplitPosition(rig.sandbox.deployment.collateral, market.condition_id, UNIT)
    answer = await holder.post(f"/operations/{route}", await holder.tokens_body(split))
    assert error_of(answer) == (400, f"invalid_field data: data must be a call of {wanted}")


@pytest.mark.parametrize("route", ROUTES)
async def test_an_operation_is_never_delegated(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket, route: str
) -> None:
    call = calls_of(rig, market)[route]
    tokens = rig.sandbox.deployment.conditional_tokens
    body = holder.body(tokens, call.encode(), await holder.next_nonce(), operation=1)
    status, words = error_of(await holder.post(f"/operations/{route}", body))
    assert (status, words.partition(":")[0]) == (400, "invalid_field signatureParams.operation")


@pytest.mark.spec(81, 94)
async def test_no_more_is_merged_than_the_wallet_holds(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    before = await rig.relayer_wei()
    body = await holder.tokens_body(a_merge(rig, market, HELD + 1))
    answer = await holder.merge(body)
    status, words = error_of(answer)
    assert (status, words.partition(":")[0]) == (400, "not_enough_to_merge")
    assert answer.json()["details"] == {"have": HELD, "need": HELD + 1}
    assert await rig.relayer_wei() == before


@pytest.mark.spec(94)
async def test_a_merge_that_the_chain_refuses_is_the_client_s_error(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    before = await rig.relayer_wei()
    collateral = rig.sandbox.deployment.collateral
    half = MergePositions(collateral, market.condition_id, UNIT, partition=(1,))
    body = await holder.tokens_body(half)
    status, words = error_of(await holder.merge(body))
    assert (status, words.partition(":")[0]) == (400, "merge_impossible")
    assert words.endswith("got empty or singleton partition")
    assert await rig.relayer_wei() == before


@pytest.mark.case("D-09")
@pytest.mark.spec(95, 96)
async def test_redeeming_before_the_resolution_costs_nothing_and_gives_the_reason(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    wei, sent = await rig.relayer_wei(), await rig.sent_count()
    redemption = a_redemption(rig, market)
    status, words = error_of(await holder.redeem(await holder.tokens_body(redemption)))
    assert status == 502
    assert words.startswith("execution_failed: ")
    tokens = rig.sandbox.deployment.conditional_tokens
    reverted = await rig.sandbox.reader.revert_of(
        holder.safe, tokens, redemption.encode(), CALL_GAS
    )
    assert reverted is not None
    assert words.endswith(reverted.rpc_message)
    assert "result for condition not received yet" in words
    assert (await rig.relayer_wei(), await rig.sent_count()) == (wei, sent)


@pytest.mark.deviation(16)
async def test_the_limit_of_a_day_is_checked_before_the_holdings(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    """A finding: an owner beyond the limit still cost a read of the chain for each operation."""
    rig.change(relays_per_owner_max=1)
    too_much = await holder.tokens_body(a_merge(rig, market, HELD + 1))
    answer = await holder.merge(too_much)
    assert (answer.status_code, answer.json()["code"]) == (429, "owner_limit_reached")


async def test_a_refused_operation_may_be_submitted_again(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    body = await holder.tokens_body(a_redemption(rig, market))
    assert (await holder.redeem(body)).status_code == 502
    await rig.sandbox.answer(market)
    async with rig.working():
        assert (await holder.redeem(body)).status_code == 200
    assert await holder.collateral_units() == HELD


@pytest.mark.case("D-09")
async def test_nothing_is_redeemed_twice(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    await rig.sandbox.answer(market)
    async with rig.working():
        first = await holder.redeem(await holder.tokens_body(a_redemption(rig, market)))
        assert first.status_code == 200
        sent = await rig.sent_count()
        again = await holder.redeem(await holder.tokens_body(a_redemption(rig, market)))
    status, words = error_of(again)
    assert (status, words.partition(":")[0]) == (400, "nothing_to_redeem")
    assert await rig.sent_count() == sent


@pytest.mark.case("D-09")
async def test_a_redemption_of_nothing_names_the_address_that_holds_the_tokens(
    rig: RelayerRig, owner: OwnerClient, market: SandboxMarket
) -> None:
    sandbox = rig.sandbox
    gift = SAFE_TRANSFER_FROM.encode(
        sandbox.trader().address, owner.address, market.tokens.yes, UNIT, b""
    )
    await sandbox.split(sandbox.trader(), market, UNIT)
    await sandbox.call(sandbox.trader(), sandbox.deployment.conditional_tokens, gift)
    answer = await owner.redeem(await owner.tokens_body(a_redemption(rig, market)))
    assert error_of(answer)[0] == 400
    assert answer.json()["details"] == {"wallet": owner.safe, "holder": owner.address}


async def test_burning_losing_tokens_succeeds_and_pays_nothing(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    await give_away(rig, holder, market.tokens.no, HELD)
    await rig.sandbox.answer(market, PRICE_NO)
    async with rig.working():
        answer = await holder.redeem(await holder.tokens_body(a_redemption(rig, market)))
    assert answer.status_code == 200, answer.text
    held = await rig.sandbox.reader.token_units([(holder.safe, str(market.tokens.yes))])
    assert (held, await holder.collateral_units()) == ([0], 0)


@pytest.mark.spec(92)
async def test_the_wait_of_an_answer_is_limited_and_the_same_request_returns_the_outcome(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    body = await holder.tokens_body(a_merge(rig, market))
    rig.change(confirmation_deadline_s=SOON)
    await rig.automine(is_on=False)
    async with rig.working():
        waiting = (await holder.merge(body)).json()
        assert waiting["confirmations"] == 0
        await rig.automine(is_on=True)
        await rig.sandbox.mine()
        rig.change(confirmation_deadline_s=SENT_WITHIN_S)
        found = (await holder.merge(body)).json()
    assert found["txHash"] == waiting["txHash"]
    assert found["confirmations"] >= 1
    assert await holder.collateral_units() == HELD


async def test_an_operation_waits_for_the_one_before_it(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    rig.change(confirmation_deadline_s=SOON)
    await rig.automine(is_on=False)
    async with rig.working():
        await holder.submitted(await holder.tokens_body(an_operator_approval(rig)))
        body = await holder.tokens_body(a_merge(rig, market))
        status, words = error_of(await holder.merge(body))
        assert (status, words.partition(":")[0]) == (503, "not_sent_yet")
        await rig.automine(is_on=True)
        await rig.sandbox.mine()
        rig.change(confirmation_deadline_s=SENT_WITHIN_S)
        assert (await holder.merge(body)).status_code == 200
    assert await holder.collateral_units() == HELD


@pytest.mark.parametrize("operation", [Operation.REDEEM, Operation.MERGE])
async def test_an_operation_whose_nonce_never_comes_fails_with_the_reason(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket, operation: Operation
) -> None:
    await rig.automine(is_on=False)
    async with rig.working():
        await holder.submitted(await holder.tokens_body(an_operator_approval(rig)))
        call = calls_of(rig, market)[operation.value]
        body = await holder.tokens_body(call)
        waiting = asyncio.create_task(holder.post(f"/operations/{operation.value}", body))
        await until_accepted(rig, 2)
        await make_strange(rig.sandbox, holder.safe, b"\0")
        await rig.automine(is_on=True)
        await rig.sandbox.mine()
        status, words = error_of(await waiting)
    expected = {
        Operation.MERGE: (400, "merge_impossible"),
        Operation.REDEEM: (502, "execution_failed"),
    }
    assert (status, words.partition(":")[0]) == expected[operation]


async def until_accepted(rig: RelayerRig, count: int) -> None:
    """Wait until so many requests are stored and open."""
    stored = sa.select(sa.func.count()).where(relay_requests.c.state.in_(OPEN))
    async with asyncio.timeout(SENT_WITHIN_S):
        while True:
            async with rig.context.database.reading() as tx:
                if await tx.scalar(stored) >= count:
                    return
            await asyncio.sleep(0.01)


async def until_sent(rig: RelayerRig) -> None:
    """Wait until the node has a pending transaction."""
    async with asyncio.timeout(SENT_WITHIN_S):
        while int((await rig.sandbox.rpc.call("txpool_status"))["pending"], 16) == 0:  # noqa: ASYNC110 - nobody reports
            await asyncio.sleep(0.01)


async def overtaken(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket, blocks: int
) -> tuple[int, str]:
    """Move the tokens away in the block of their merge; return the answer of the merge."""
    body = await holder.tokens_body(a_merge(rig, market))
    await rig.automine(is_on=False)
    async with rig.working():
        waiting = asyncio.create_task(holder.merge(body))
        await until_sent(rig)
        await give_away(rig, holder, market.tokens.yes, HELD)
        await rig.sandbox.mine(blocks)
        return error_of(await waiting)


@pytest.mark.spec(95)
async def test_a_revert_in_a_block_is_reported_as_failed(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    status, words = await overtaken(rig, holder, market, blocks=3)
    assert (status, words.partition(":")[0]) == (502, "execution_failed")
    assert "reverted in block" in words


async def test_a_revert_that_is_not_final_in_time_is_reported_as_failed_too(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    rig.change(confirmation_deadline_s=10)
    status, words = await overtaken(rig, holder, market, blocks=1)
    assert (status, words.partition(":")[0]) == (502, "execution_failed")


async def test_a_call_that_failed_within_a_mined_transaction_is_a_failure(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    code = a_strange_safe(holder.address, FAILS_QUIETLY)
    await make_strange(rig.sandbox, holder.safe, code)
    sent = await rig.sent_count()
    async with rig.working():
        waiting = asyncio.create_task(holder.merge(await holder.tokens_body(a_merge(rig, market))))
        async with asyncio.timeout(SENT_WITHIN_S):
            while await rig.sent_count() == sent:  # noqa: ASYNC110 - nobody reports
                await asyncio.sleep(0.01)
        await rig.sandbox.mine(3)
        status, words = error_of(await waiting)
    assert status == 502
    assert "the wallet's own call in it failed" in words


async def test_the_addresses_of_a_body_may_be_in_any_case(
    rig: RelayerRig, holder: OwnerClient, market: SandboxMarket
) -> None:
    body = await holder.tokens_body(a_merge(rig, market))
    for path in ("from", "to", "proxyWallet"):
        body = changed(body, path, body[path].lower())
    assert body["from"] != checksum_address(holder.address)
    async with rig.working():
        assert (await holder.merge(body)).status_code == 200
