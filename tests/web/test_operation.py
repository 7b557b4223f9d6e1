"""The operator's state, of a real sandbox's tables and chain."""

import dataclasses

import httpx
import pytest
import sqlalchemy as sa
from tests.rigs.sandbox import Sandbox
from tests.web.contexts import OPERATOR_TOKEN, client_of

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.store.database import Database
from foretell.store.tables import (
    blocks,
    events,
    halted_markets,
    markets,
    payouts,
    settlement_txs,
    trades,
)
from foretell.web.context import WebContext
from foretell.web.operation import BLOCKS_BEHIND_MAX, OperatorView

pytestmark = pytest.mark.anyio

NOW_MS = 1_800_000_000_000


@pytest.fixture
def operated(context: WebContext, database: Database, sandbox: Sandbox) -> WebContext:
    operation = OperatorView(database, sandbox.rpc, OPERATOR_TOKEN, lambda: NOW_MS)
    return dataclasses.replace(context, operation=operation)


@pytest.fixture
def database(fresh_database: Database) -> Database:
    return fresh_database


def a_row(table: sa.Table, **values: object) -> dict[str, object]:
    """Return a row of a table: these values, and something for every other column."""
    texts = {each.name: "0x1" for each in table.columns if isinstance(each.type, sa.String)}
    numbers = {each.name: 0 for each in table.columns if not isinstance(each.type, sa.String)}
    return {**numbers, **texts, **values}


async def fetch(context: WebContext, token: bytes = OPERATOR_TOKEN.encode()) -> httpx.Response:
    async with client_of(context) as http:
        return await http.get("/operator/status", headers={b"authorization": b"Bearer " + token})


async def test_a_new_installation_has_nothing_that_waits(operated: WebContext) -> None:
    found = (await fetch(operated)).json()
    lists = [found[name] for name in ("work", "due", "halts", "accounts")]
    assert lists == [[], [], [], []]
    assert found["serverMs"] == NOW_MS


async def test_the_state_is_the_operators_alone(operated: WebContext, context: WebContext) -> None:
    for token in (b"", OPERATOR_TOKEN[:-1].encode(), "é".encode() * 64):
        refused = await fetch(operated, token)
        assert refused.json()["error"]["code"] == "wrong_operator_token"
        assert refused.status_code == 401
    assert (await fetch(context)).status_code == 404


async def test_work_that_waits_for_long_is_late(
    operated: WebContext, database: Database, sandbox: Sandbox
) -> None:
    ages = {"MATCHED": 200_000, "MINED": 1_000, "CONFIRMED": 9_000_000}
    sender = sandbox.account(AccountRole.OPERATOR).address
    async with database.writing() as tx:
        for status, age_ms in ages.items():
            matched_at_ms = NOW_MS - age_ms
            row = a_row(trades, trade_id=status, status=status, matched_at_ms=matched_at_ms)
            await tx.execute(trades.insert(), [row])
        await tx.execute(settlement_txs.insert(), [a_row(settlement_txs, sender=sender)])
    found = (await fetch(operated)).json()
    work = [(each["status"], each["oldestAgeMs"], each["isLate"]) for each in found["work"]]
    assert sorted(work) == [("MATCHED", 200_000, True), ("MINED", 1_000, False)]
    (account,) = found["accounts"]
    assert account["address"].lower() == sender
    assert int(account["balanceWei"]) > 0


async def test_a_market_after_its_end_is_due_until_it_is_resolved(
    operated: WebContext, database: Database
) -> None:
    ends = {"over": NOW_MS - 1, "resolved": NOW_MS - 2, "open": NOW_MS + 1}
    async with database.writing() as tx:
        for number, (name, ends_at_ms) in enumerate(ends.items()):
            event = a_row(events, event_id=number, slug=name, ends_at_ms=ends_at_ms)
            await tx.execute(events.insert(), [event])
            own = {
                name_: f"{name}-{name_}"
                for name_ in ("condition_id", "slug", "token_yes", "token_no")
            }
            market = a_row(markets, market_id=number, event_id=number, **own)
            await tx.execute(markets.insert(), [market])
        paid = a_row(payouts, condition_id="resolved-condition_id")
        await tx.execute(payouts.insert(), [paid])
    found = (await fetch(operated)).json()
    assert [each["eventSlug"] for each in found["due"]] == ["over"]


async def test_a_halted_market_is_listed_until_it_resumes(
    operated: WebContext, database: Database
) -> None:
    async with database.writing() as tx:
        event = a_row(events, event_id=1, slug="rain", ends_at_ms=NOW_MS + 1)
        await tx.execute(events.insert(), [event])
        market = a_row(markets, market_id=1, event_id=1, condition_id="0xaa", question="Rain?")
        await tx.execute(markets.insert(), [market])
        halt = a_row(halted_markets, condition_id="0xaa", since_ms=NOW_MS - 5)
        await tx.execute(halted_markets.insert(), [halt])
    expected = {
        "conditionId": "0xaa",
        "question": "Rain?",
        "eventSlug": "rain",
        "sinceMs": NOW_MS - 5,
    }
    assert (await fetch(operated)).json()["halts"] == [expected]
    async with database.writing() as tx:
        await tx.execute(halted_markets.delete())
    assert (await fetch(operated)).json()["halts"] == []


async def test_an_index_far_behind_the_node_is_said(
    operated: WebContext, database: Database, sandbox: Sandbox
) -> None:
    head = int(await sandbox.rpc.send("eth_blockNumber"), 16)
    for behind in (BLOCKS_BEHIND_MAX, BLOCKS_BEHIND_MAX + 1):
        async with database.writing() as tx:
            await tx.execute(blocks.delete())
            row = a_row(blocks, block_number=head - behind)
            await tx.execute(blocks.insert(), [row])
        found = (await fetch(operated)).json()["chain"]
        assert found["headBlock"] - found["indexedBlock"] == behind
        assert found["isBehind"] == (behind > BLOCKS_BEHIND_MAX)
