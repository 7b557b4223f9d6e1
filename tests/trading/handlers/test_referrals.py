"""Referrals: who referred a wallet, from the header of its owner's request for a key."""

import pytest
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import NOW_S, an_address

from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.store.trading.referrals import load_referrer

pytestmark = pytest.mark.anyio

ALICE, BOB, CAROL = (an_address(name) for name in ("alice", "bob", "carol"))


async def create(rig: TradingRig, referral: str, prefix: str = "SERVICE_") -> tuple[int, str]:
    trader = Trader(rig, "bob", prefix=prefix)
    headers = trader.l1_headers() | {f"{prefix}REFERRAL": referral}
    answer = await rig.client.post("/auth/api-key", headers=headers)
    return answer.status_code, answer.json().get("code", "")


async def referrers(rig: TradingRig) -> set[Address | None]:
    async with rig.context.database.reading() as tx:
        return {await load_referrer(tx, wallet) for wallet in rig.context.wallets.of(BOB)}


@pytest.mark.parametrize("prefix", ["SERVICE_", "KUEST_", "POLY_"])
async def test_a_referral_is_of_all_wallets_of_the_address(rig: TradingRig, prefix: str) -> None:
    assert await create(rig, checksum_address(ALICE), prefix) == (200, "")
    assert await referrers(rig) == {ALICE}


async def test_the_first_referral_of_an_address_stays(rig: TradingRig) -> None:
    for referral in (ALICE, CAROL):
        assert await create(rig, referral) == (200, "")
    assert await referrers(rig) == {ALICE}


async def test_an_address_does_not_refer_itself(rig: TradingRig) -> None:
    assert await create(rig, BOB) == (200, "")
    assert await referrers(rig) == {None}


async def test_an_address_does_not_refer_itself_by_a_wallet_of_its_own(rig: TradingRig) -> None:
    wallets = rig.context.wallets.of(BOB)
    assert len(wallets) > 1
    for wallet in wallets:
        assert await create(rig, wallet) == (200, "")
    assert await referrers(rig) == {None}


@pytest.mark.parametrize("referral", ["", "alice", "0x12", f"{ALICE}00"])
async def test_a_malformed_referral_makes_no_key(rig: TradingRig, referral: str) -> None:
    assert await create(rig, referral) == (401, "missing_header")
    assert await referrers(rig) == {None}


async def test_a_referral_counts_only_when_a_key_is_created(rig: TradingRig, bob: Trader) -> None:
    headers = bob.l1_headers() | {"SERVICE_REFERRAL": ALICE}
    answer = await rig.client.get("/auth/derive-api-key", headers=headers)
    assert (answer.status_code, rig.clock.at_ms // 1000) == (200, NOW_S)
    assert await referrers(rig) == {None}
