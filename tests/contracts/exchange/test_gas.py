"""Gas of the contracts: a layout with higher gas, or an outdated table, fails here."""

import json

import pytest
from tests.contracts.evm import ROOT
from tests.contracts.gas import SNAPSHOT, TAKERS, match_gas, measured
from tests.contracts.market import World
from tests.contracts.neg_risk.rig import NegRisk
from tests.contracts.signing import OWN_V1, OWN_V2

MAKERS = 20
GAS_PER_MAKER_MAX = {"transfer": 64_000, "mint": 72_000, "merge": 70_000}
GAS_RATIO_IN_BATCH_MAX = 0.85
NONCE_READ_GAS = 2_200
# Addresses are part of the calldata, and their number of zero bytes varies.
TOLERANCE = 0.005


@pytest.mark.parametrize("profile", [OWN_V1, OWN_V2])
@pytest.mark.parametrize("kind", list(GAS_PER_MAKER_MAX))
def test_the_gas_of_each_of_twenty_makers_is_limited(world: World, kind: str, profile: int) -> None:
    assert match_gas(world, kind, profile, MAKERS) / MAKERS <= GAS_PER_MAKER_MAX[kind]


@pytest.mark.parametrize("profile", ["v1", "v2"])
@pytest.mark.parametrize("kind", list(GAS_PER_MAKER_MAX))
def test_a_trade_in_a_batch_of_twenty_takers_costs_less_than_one_alone(
    kind: str, profile: str
) -> None:
    kept = json.loads(SNAPSHOT.read_text())
    alone = kept[f"match, {kind}, {profile}, makers: 1"]
    batch = kept[f"batch, {kind}, {profile}, takers: {TAKERS}"]
    assert batch / TAKERS <= GAS_RATIO_IN_BATCH_MAX * alone


def test_a_raised_nonce_costs_no_more_than_reading_it(world: World) -> None:
    """A raised nonce marks the last byte of its address; all addresses with it then pay the read."""
    cheap = match_gas(world, "transfer", OWN_V1, MAKERS, salt=1_730_000_000_001)
    for number in range(256):
        world.evm.fund(address := f"0x{number:040x}")
        world.exchange.send("incrementNonce", sender=address)
    assert match_gas(world, "transfer", OWN_V1, MAKERS) <= cheap + (MAKERS + 1) * NONCE_READ_GAS


def test_the_gas_table_matches_the_measurements(neg_risk: NegRisk) -> None:
    kept = json.loads(SNAPSHOT.read_text())
    assert measured(neg_risk) == pytest.approx(kept, rel=TOLERANCE)


@pytest.mark.parametrize("profile", ["v1", "v2"])
@pytest.mark.parametrize("kind", list(GAS_PER_MAKER_MAX))
def test_the_reference_documentation_shows_the_gas_table(kind: str, profile: str) -> None:
    kept = json.loads(SNAPSHOT.read_text())
    one, five, twenty = (kept[f"match, {kind}, {profile}, makers: {n}"] for n in (1, 5, 20))
    batch = kept[f"batch, {kind}, {profile}, takers: {TAKERS}"]
    row = (
        f"| {kind}, {profile} | {one:,} | {five:,} | {twenty:,} | {round(twenty / 20):,} "
        f"| {round(batch / TAKERS):,} |"
    )
    assert row in (ROOT / "docs" / "reference" / "contracts.md").read_text().splitlines()
