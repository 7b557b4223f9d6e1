"""Fields that a client may not set, in the body of every request to the relayer that changes something.

Each request is made twice, on the same state of the chain and of new tables: as documented, and with the fields in
each of its objects. The answers and all rows are equal.
"""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from tests.edge.documents.planted_fields import CANARIES, Change, Rows, changes_of, planted, rows_of
from tests.relayer import test_deposit_wallets, test_proxy_wallets
from tests.relayer.rig import (
    DATABASE_FILE,
    UNIT,
    Body,
    OwnerClient,
    RelayerRig,
    an_approval,
    an_operator_approval,
)
from tests.rigs.chain_snapshots import EMPTY_POOL, take_back
from tests.rigs.events import SandboxEvent
from tests.rigs.sandbox import Sandbox, SandboxMarket

from foretell.chain import fees
from foretell.domain.contracts.calldata import MergePositions, RedeemPositions, SplitPosition
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.evm.raw_transaction import Fees
from foretell.relayer.routes import build_app
from foretell.sdk import wallet_calls
from foretell.sdk.contracts import Contracts
from foretell.sdk.wallet_calls import MarketCondition

pytestmark = pytest.mark.anyio

HELD: Final = 100 * UNIT
LOOK_S: Final = 0.01
CHANGES: Final = {str(each): each for each in changes_of(build_app)}


class Prepared(NamedTuple):
    """An owner, and the body of a request that succeeds now."""

    owner: OwnerClient
    body: Body


Prepare = Callable[[RelayerRig], Awaitable[Prepared]]


async def with_safe(rig: RelayerRig) -> OwnerClient:
    owner = await rig.owner("an owner")
    await owner.deploy()
    return owner


async def with_sets(rig: RelayerRig) -> tuple[OwnerClient, SandboxMarket]:
    owner, market = await with_safe(rig), await rig.sandbox.ask()
    await owner.hold(market, HELD)
    return owner, market


async def to_submit(rig: RelayerRig) -> Prepared:
    owner = await with_safe(rig)
    target = rig.sandbox.deployment.collateral
    return Prepared(owner, await owner.call_body(target, an_approval(rig, 7), metadata="a label"))


async def to_create_a_safe(rig: RelayerRig) -> Prepared:
    owner = await rig.owner("an owner")
    return Prepared(owner, owner.create_body())


async def to_create_a_deposit_wallet(rig: RelayerRig) -> Prepared:
    owner = await rig.owner("an owner")
    return Prepared(owner, test_deposit_wallets.creation(owner))


async def to_batch(rig: RelayerRig) -> Prepared:
    owner, body = await to_create_a_deposit_wallet(rig)
    await owner.submitted(body)
    await rig.settle()
    call = (rig.sandbox.deployment.collateral, an_approval(rig, 7))
    return Prepared(owner, test_deposit_wallets.batch(owner, call))


async def to_call_by_proxy(rig: RelayerRig) -> Prepared:
    owner = await rig.owner("an owner")
    approving = test_proxy_wallets.approving(rig)
    return Prepared(owner, await test_proxy_wallets.proxied(owner, approving))


async def to_redeem(rig: RelayerRig) -> Prepared:
    owner, market = await with_sets(rig)
    await rig.sandbox.answer(market)
    call = RedeemPositions(rig.sandbox.deployment.collateral, market.condition_id)
    return Prepared(owner, await owner.tokens_body(call))


async def to_merge(rig: RelayerRig) -> Prepared:
    owner, market = await with_sets(rig)
    call = MergePositions(rig.sandbox.deployment.collateral, market.condition_id, UNIT)
    return Prepared(owner, await owner.tokens_body(call))


async def to_split(rig: RelayerRig) -> Prepared:
    owner, market = await with_sets(rig)
    await owner.fund(HELD)
    for call in wallet_calls.approvals(Contracts.of(rig.sandbox.deployment)):
        await owner.execute_alone(call.to, call.calldata)
    split = SplitPosition(rig.sandbox.deployment.collateral, market.condition_id, UNIT)
    return Prepared(owner, await owner.tokens_body(split))


async def to_convert(rig: RelayerRig) -> Prepared:
    owner, event = await with_safe(rig), await SandboxEvent.ask(rig.sandbox)
    contracts, first = Contracts.of(rig.sandbox.deployment), event.markets[0]
    condition = MarketCondition(first.condition_id, is_neg_risk=True)
    assert first.neg_risk_market_id is not None
    await owner.fund(HELD)
    approvals, split = (
        wallet_calls.approvals(contracts),
        wallet_calls.split(contracts, condition, HELD),
    )
    for call in (*approvals, split):
        await owner.execute_alone(call.to, call.calldata)
    convert = wallet_calls.convert(contracts, first.neg_risk_market_id, [0], UNIT)
    return Prepared(owner, await body_of(owner, convert))


async def body_of(owner: OwnerClient, call: InnerCall) -> Body:
    return owner.body(call.to, call.calldata, await owner.next_nonce())


async def to_approve(rig: RelayerRig) -> Prepared:
    owner = await with_safe(rig)
    collateral = rig.sandbox.deployment.collateral
    return Prepared(owner, await owner.call_body(collateral, an_approval(rig, 7)))


async def to_set_an_approval(rig: RelayerRig) -> Prepared:
    owner = await with_safe(rig)
    return Prepared(owner, await owner.tokens_body(an_operator_approval(rig)))


async def to_deploy(rig: RelayerRig) -> Prepared:
    owner = await rig.owner("an owner")
    full = owner.create_body()
    short = {"owner": full["from"], "signature": full["signature"]}
    return Prepared(owner, full["signatureParams"] | short)


REQUESTS: Final[list[tuple[str, Prepare]]] = [
    ("POST /submit", to_submit),
    ("POST /submit", to_create_a_safe),
    ("POST /submit", to_create_a_deposit_wallet),
    ("POST /submit", to_batch),
    ("POST /submit", to_call_by_proxy),
    ("POST /operations/redeem-position", to_redeem),
    ("POST /operations/merge-position", to_merge),
    ("POST /operations/split-position", to_split),
    ("POST /operations/convert-position", to_convert),
    ("POST /operations/approve", to_approve),
    ("POST /operations/set-approval", to_set_an_approval),
    ("POST /wallet/safe", to_deploy),
]


def test_every_change_of_the_document_has_its_requests() -> None:
    assert {name for name, _ in REQUESTS} == CHANGES.keys()
    kinds = CHANGES["POST /submit"].schema["anyOf"]
    assert len([name for name, _ in REQUESTS if name == "POST /submit"]) == len(kinds)


@pytest.fixture(autouse=True)
def fixed_fees(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fees of first attempts, which depend on earlier blocks otherwise."""

    async def fetch(_rpc: object, _cap_wei: int) -> Fees:
        return Fees(10**11, 10**10)

    monkeypatch.setattr(fees, "fetch_fees", fetch)


def copy_to(folder: Path, database: Path) -> None:
    folder.mkdir()
    shutil.copy(database, folder / DATABASE_FILE)


@contextlib.asynccontextmanager
async def serving(sandbox: Sandbox, folder: Path, database: Path) -> AsyncIterator[RelayerRig]:
    """Yield a relayer with new tables; the chain is as before afterwards.

    Blocks are mined on demand: rows have their numbers, and a node that mines by itself mines one more or less.
    """
    copy_to(folder, database)
    snapshot = await sandbox.rpc.send("evm_snapshot")
    rig = RelayerRig(sandbox, folder)
    await rig.start()
    await rig.automine(is_on=False)
    try:
        yield rig
    finally:
        await rig.automine(is_on=True)
        await rig.stop()
        await take_back(sandbox.rpc, snapshot)


@contextlib.asynccontextmanager
async def mining(rig: RelayerRig) -> AsyncIterator[None]:
    """Mine when a transaction waits, and at no other time, until the end of a block of code."""

    async def mine() -> None:
        rpc = rig.sandbox.rpc
        while True:
            if (await rpc.send("txpool_status"))["pending"] != EMPTY_POOL["pending"]:
                await rig.sandbox.mine()
            await asyncio.sleep(LOOK_S)

    task = asyncio.create_task(mine())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def played(
    rig: RelayerRig, change: Change, prepare: Prepare, canary: object = None
) -> tuple[Any, Rows]:
    """Return the answer to a request, which must succeed, and all rows once it is carried out."""
    owner, body = await prepare(rig)
    sent = body if canary is None else planted(body, [change.schema], canary)
    async with mining(rig), rig.working():
        answer = await owner.post(change.path, sent)
    assert answer.status_code == 200, answer.text
    assert canary is None or len(json.dumps(sent)) > 2 * len(json.dumps(body))
    await rig.settle()
    return answer.json(), await rows_of(rig.database)


@pytest.mark.case("G-08")
@pytest.mark.parametrize(("name", "prepare"), REQUESTS)
async def test_a_request_with_fields_that_a_client_may_not_set_is_stored_and_answered_as_without_them(
    fresh_sandbox: Sandbox, empty_database: Path, tmp_path: Path, name: str, prepare: Prepare
) -> None:
    change = CHANGES[name]
    async with serving(fresh_sandbox, tmp_path / "documented", empty_database) as rig:
        documented = await played(rig, change, prepare)
    assert documented[1]["relay_requests"]
    for canary in CANARIES:
        async with serving(fresh_sandbox, tmp_path / str(canary), empty_database) as rig:
            assert await played(rig, change, prepare, canary) == documented
