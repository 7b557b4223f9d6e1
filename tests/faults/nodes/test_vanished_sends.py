"""Settlement and the relayer while each transaction that they send vanishes, for ten minutes of a test's clock.

The node answers every broadcast with the transaction's hash. It either never has the transaction, or drops it
before the next block. Trades and requests keep arriving, and in the middle of it the process is started again.
"""

import os
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import httpx
import pytest
from tests.faults.nodes.draining import (
    FURTHER,
    attempt,
    check_nonces,
    drain_requests,
    drain_trades,
    match,
    used_nonces,
)
from tests.faults.nodes.lying_node import BROADCAST, LyingNode, Request, lying
from tests.relayer.rig import OwnerClient, RelayerRig, an_approval
from tests.rigs.fault_proxy import http_answer
from tests.rigs.sandbox import Sandbox
from tests.settlement.rig import HELD, SettlementRig

from foretell.domain.contracts.calldata import ADD_OPERATOR
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.relay.request import RelayState
from foretell.domain.values.hexadecimal import keccak256
from foretell.store.outbox.transactions import RELAYED, SETTLEMENT

pytestmark = pytest.mark.anyio

LASTS_S: Final = 600
IS_LONG: Final = "FORETELL_TEST_LIES" in os.environ
"""Whether it is `make faults`, which sets that number."""
ROUND_S: Final = 2 if IS_LONG else 20
ROUNDS: Final = LASTS_S // ROUND_S
ROUNDS_PER_MATCH: Final = 2 if IS_LONG else 1
"""Rounds from one or two trades to the next ones."""
ROUNDS_PER_REQUEST: Final = 5 if IS_LONG else 1
OWNERS: Final = 10
DEPLOYED: Final = 6
"""Owners whose wallets are on the chain before."""
ATTEMPTS_MAX: Final = 8
"""Prices of one transaction: where its fees rise at each repetition, there are more, and it is given up."""


async def swallow(node: LyingNode, request: Request) -> bytes | None:
    """The node names the transactions that it is sent, and has none of them."""
    if request.calls[0]["method"] != BROADCAST:
        return http_answer(await node.forward(request))
    answers = [
        {"jsonrpc": "2.0", "id": call["id"], "result": hash_of(call["params"][0])}
        for call in request.calls
    ]
    return http_answer(request.encode(answers))


def hash_of(raw: str) -> str:
    return "0x" + keccak256(bytes.fromhex(raw[2:])).hex()


@pytest.fixture
async def node(manual: Sandbox, *, is_swallowed: bool) -> AsyncIterator[LyingNode]:
    """A node in front of the chain, which may swallow every transaction."""
    kinds = (swallow,) if is_swallowed else ()
    async with lying(manual.rpc_url, "vanished", kinds, rate=float(is_swallowed)) as node:
        yield node


async def end_round(sandbox: Sandbox) -> None:
    """Mine a block that has no transaction."""
    await sandbox.rpc.send("anvil_dropAllTransactions")
    await sandbox.mine()


@pytest.mark.case("D-04")
@pytest.mark.parametrize(
    ("is_swallowed", "has_batches", "has_further"),
    [(True, False, False), (True, True, False), (True, True, True), (False, True, True)],
    ids=["alone", "in batches", "in batches of two accounts", "dropped from the pool"],
)
async def test_trades_of_ten_minutes_in_which_all_sends_vanish_settle_once_within_a_minute(
    manual: Sandbox, folder: Path, node: LyingNode, *, has_batches: bool, has_further: bool
) -> None:
    further = (manual.trader(FURTHER),) if has_further else ()
    rig = SettlementRig(
        manual, folder, node.url, has_batches=has_batches, further_operators=further
    )
    await rig.start()
    try:
        await settle_after_vanished_sends(rig, node)
    finally:
        await rig.stop()


async def settle_after_vanished_sends(rig: SettlementRig, node: LyingNode) -> None:
    sandbox, market, rng = rig.sandbox, await rig.open(), random.Random("vanished trades")
    traders = [await rig.trader(number) for number in range(3)]
    for trader in traders:
        await sandbox.split(trader.account, market, HELD)
    for account in rig.further_operators:
        added = ADD_OPERATOR.encode(account.address)
        await sandbox.call(sandbox.account(AccountRole.ADMIN), sandbox.deployment.exchange, added)
    await rig.see()
    operators = [sandbox.account(AccountRole.OPERATOR), *rig.further_operators]
    before = {each.address: await used_nonces(sandbox, each.address) for each in operators}
    trade_ids: list[str] = []
    node.is_lying = True
    for number in range(ROUNDS):
        if number % ROUNDS_PER_MATCH == 0:
            trade_ids += await match(rng, market, traders)
        if number == ROUNDS // 2:
            await rig.restart()
        await attempt(rig.act())
        assert len(await rig.unfinished()) <= rig.options.in_flight_max
        await end_round(sandbox)
        rig.clock.move(ROUND_S * 1_000)
        await attempt(rig.see())
    assert {each: await used_nonces(sandbox, each) for each in before} == before
    node.heal()
    await drain_trades(rig)
    trades = await rig.trades(trade_ids)
    assert {each.status for each in trades} == {TradeStatus.CONFIRMED}
    assert await rig.fill_count() == sum(1 + len(each.trade.fills) for each in trades)
    for address, nonce in before.items():
        await check_nonces(sandbox, rig.database, SETTLEMENT, address, nonce)
    await rig.check_ledger()
    attempts = [len(each.attempts) for each in await rig.sent()]
    assert max(attempts) <= ATTEMPTS_MAX


@pytest.mark.case("D-04")
@pytest.mark.parametrize("is_swallowed", [True, False], ids=["swallowed", "dropped"])
async def test_requests_of_ten_minutes_in_which_all_sends_vanish_are_executed_once_within_a_minute(
    manual: Sandbox, folder: Path, node: LyingNode
) -> None:
    rig = RelayerRig(manual, folder, node.url)
    await rig.start()
    try:
        await relay_after_vanished_sends(rig, node)
    finally:
        await rig.stop()


async def relay_after_vanished_sends(rig: RelayerRig, node: LyingNode) -> None:
    sandbox, relayer = rig.sandbox, rig.sandbox.account(AccountRole.RELAYER).address
    owners = [await rig.owner(f"owner {number}") for number in range(OWNERS)]
    for owner in owners[:DEPLOYED]:
        await owner.deploy()
    before = await rig.sent_count()
    accepted: set[str] = set()
    node.is_lying = True
    for number in range(ROUNDS):
        if number % ROUNDS_PER_REQUEST == 0:
            answer = await ask(owners[number // ROUNDS_PER_REQUEST % OWNERS])
            if answer.status_code == 200:
                accepted.add(answer.json()["transactionID"])
        if number == ROUNDS // 2:
            await rig.restart()
        await attempt(rig.run_once())
        await end_round(sandbox)
        rig.clock.move(ROUND_S * 1_000)
    assert await rig.sent_count() == before
    node.heal()
    await drain_requests(rig)
    assert len(accepted) >= ROUNDS // ROUNDS_PER_REQUEST // 2
    assert {(await rig.relay(each)).state for each in accepted} == {RelayState.CONFIRMED}
    assert await rig.sent_count() == before + len(accepted)
    await check_nonces(sandbox, rig.database, RELAYED, relayer, before)
    attempts = [len((await rig.carrier(each)).attempts) for each in accepted]
    assert max(attempts) <= ATTEMPTS_MAX


async def ask(owner: OwnerClient) -> httpx.Response:
    """Submit the owner's next transaction, or the deployment of its wallet, which is one however often it is asked."""
    if not await owner.rig.sandbox.reader.code(owner.safe):
        return await owner.submit(owner.create_body())
    nonce = await owner.next_nonce()
    approval = an_approval(owner.rig, 1 + int(nonce))
    return await owner.submit(
        await owner.call_body(owner.rig.sandbox.deployment.collateral, approval)
    )
