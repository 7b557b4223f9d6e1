"""What the contracts cost: a layout that grew dearer, or a table that was not renewed, fails here."""

import json

import pytest
from tests.contracts.evm import ROOT
from tests.contracts.gas import SNAPSHOT, match_gas, measured
from tests.contracts.market import World
from tests.contracts.neg_risk import NegRisk
from tests.contracts.signing import OWN_V1, OWN_V2

MAKERS = 20
GAS_PER_MAKER_MAX = {"transfer": 64_000, "mint": 72_000, "merge": 70_000}
NONCE_READ_GAS = 2_200
# Addresses are part of the calldata, and have more or fewer zeros from run to run.
TOLERANCE = 0.005


@pytest.mark.parametrize("profile", [OWN_V1, OWN_V2])
@pytest.mark.parametrize("kind", list(GAS_PER_MAKER_MAX))
def test_a_match_of_twenty_makers_costs_no_more_a_maker(
    world: World, kind: str, profile: int
) -> None:
    assert match_gas(world, kind, profile, MAKERS) / MAKERS <= GAS_PER_MAKER_MAX[kind]


def test_makers_who_raised_their_nonces_cost_no_more_than_its_reading(world: World) -> None:
    """The others on the same last byte of an address pay it too; no more than everybody did."""
    cheap = match_gas(world, "transfer", OWN_V1, MAKERS, salt=1_730_000_000_001)
    for number in range(256):
        world.evm.fund(address := f"0x{number:040x}")
        world.exchange.send("incrementNonce", sender=address)
    assert match_gas(world, "transfer", OWN_V1, MAKERS) <= cheap + (MAKERS + 1) * NONCE_READ_GAS


def test_the_table_says_what_everything_costs(neg_risk: NegRisk) -> None:
    kept = json.loads(SNAPSHOT.read_text())
    assert measured(neg_risk) == pytest.approx(kept, rel=TOLERANCE)


@pytest.mark.parametrize("profile", ["v1", "v2"])
@pytest.mark.parametrize("kind", list(GAS_PER_MAKER_MAX))
def test_the_reference_shows_the_table(kind: str, profile: str) -> None:
    kept = json.loads(SNAPSHOT.read_text())
    one, five, twenty = (kept[f"match, {kind}, {profile}, makers: {n}"] for n in (1, 5, 20))
    row = f"| {kind}, {profile} | {one:,} | {five:,} | {twenty:,} | {round(twenty / 20):,} |"
    assert row in (ROOT / "docs" / "reference" / "contracts.md").read_text().splitlines()
