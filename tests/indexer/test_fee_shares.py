"""Shares of the fees that the real exchange charged: they are what its receiver got, and a reorganization unwinds them."""

import pytest
from tests.indexer.rig import IndexerRig
from tests.rigs.rows import a_market_row, an_event_row
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up
from tests.rigs.values import NOW_MS, an_address

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.edge.builders.keys import builder_code
from foretell.store.creation.markets import record_event
from foretell.store.database import Database
from foretell.store.queries.fee_shares import (
    FeeTotals,
    ReferralRate,
    load_fee_totals,
    record_referral_rate,
)
from foretell.store.queries.referrals import ReferralFilter, load_received_shares
from foretell.store.trading.referrals import record_referral

pytestmark = pytest.mark.anyio

REFERRER = an_address("referrer")
ACTS = 25


async def totals(database: Database) -> dict[str, FeeTotals]:
    async with database.reading() as tx:
        return {each.asset: each for each in await load_fee_totals(tx)}


async def earned_units(database: Database, token_id: str) -> int:
    wanted = ReferralFilter(REFERRER, builder_code(REFERRER), token_id=token_id)
    async with database.reading() as tx:
        return sum(each.share_units for each in await load_received_shares(tx, wanted, 10, 0))


async def held_by_treasury(sandbox: Sandbox, rig: IndexerRig) -> dict[str, int]:
    """Return what the receiver of fees holds of each asset."""
    treasury = sandbox.account(AccountRole.TREASURY).address
    tokens = [str(token) for token in rig.tokens]
    held = await sandbox.reader.token_units([(treasury, token) for token in tokens])
    collateral = await sandbox.reader.collateral_units(treasury)
    return {COLLATERAL: collateral, **dict(zip(tokens, held, strict=True))}


async def test_shares_are_parts_of_what_the_receiver_got_until_a_reorganization(
    rig: IndexerRig, fresh_sandbox: Sandbox, database: Database
) -> None:
    market = a_market_row(condition_id=rig.condition_id, exchange=fresh_sandbox.deployment.exchange)
    async with database.writing() as tx:
        await record_event(tx, an_event_row("rain", market), NOW_MS)
        await record_referral_rate(tx, ReferralRate(0, 2_500))
        for trader in rig.traders[:2]:
            await record_referral(tx, [trader.address], REFERRER, 0)
    context = an_indexer(fresh_sandbox, database)
    await catch_up(context)
    before = await held_by_treasury(fresh_sandbox, rig)
    snapshot = await fresh_sandbox.rpc.send("evm_snapshot")
    for _ in range(ACTS):
        await rig.act()
    await catch_up(context)

    found, after = await totals(database), await held_by_treasury(fresh_sandbox, rig)
    got = {asset: units - before[asset] for asset, units in after.items()}
    assert {asset: each.fee_units for asset, each in found.items()} == {
        asset: units for asset, units in got.items() if units
    }
    assert len(found) > 1
    for asset, each in found.items():
        assert sum(each.shares) == each.fee_units
        assert 0 < each.shares.referrer_units == await earned_units(database, asset)

    assert await fresh_sandbox.rpc.send("evm_revert", snapshot)
    await fresh_sandbox.mine()
    await catch_up(context)
    assert await totals(database) == {}
    assert await earned_units(database, COLLATERAL) == 0
