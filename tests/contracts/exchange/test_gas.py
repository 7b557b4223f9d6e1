"""Gas of the contracts: a layout with higher gas, or an outdated table, fails here."""

import json

import pytest
from tests.contracts.evm import ROOT
from tests.contracts.gas import SNAPSHOT, TAKERS, measure

MAKERS = 20
LIMITS = {
    "match, transfer": 66_000,
    "match, mint": 72_000,
    "match, merge": 70_000,
    "packed, transfer": 61_000,
    "packed, mint": 67_000,
    "packed, merge": 65_000,
    "packed, neg-risk mint": 71_000,
    "packed with fees, neg-risk mint": 71_000,
    "packed with fees, transfer": 61_000,
    "packed with fees, mint": 67_000,
    "packed with fees, merge": 65_000,
}
CALLDATA_KINDS = (
    *(", transfer", ", mint", ", merge"),
    *(" with fees, transfer", " with fees, mint", " with fees, merge"),
    *(", neg-risk transfer", ", neg-risk mint", ", neg-risk merge"),
)
SECOND_FILL_MAX = 43_000
GAS_RATIO_IN_BATCH_MAX = 0.85
CALLDATA_RATIO_MAX = 0.22
CALLDATA_NOT_ZERO_RATIO_MAX = 0.68
NONCE_READ_GAS = 2_300
PACKED_CONTRACT_SAVING_MIN = 500
# Addresses are part of the calldata, and their number of zero bytes varies.
TOLERANCE = 0.005


@pytest.fixture(scope="module")
def kept() -> dict[str, int]:
    table: dict[str, int] = json.loads(SNAPSHOT.read_text())
    return table


@pytest.mark.anyio
async def test_the_gas_table_matches_the_measurements(kept: dict[str, int]) -> None:
    """On a chain of its own: what other tests left in the accounts changes the gas."""
    assert await measure() == pytest.approx(kept, rel=TOLERANCE)


@pytest.mark.parametrize("profile", ["v1", "v2"])
@pytest.mark.parametrize(("match", "limit"), LIMITS.items())
def test_the_gas_of_each_of_twenty_makers_is_limited(
    kept: dict[str, int], match: str, limit: int, profile: str
) -> None:
    assert kept[f"{match}, {profile}, makers: {MAKERS}"] / MAKERS <= limit


@pytest.mark.parametrize("profile", ["v1", "v2"])
def test_a_second_fill_of_an_order_verifies_no_signature(
    kept: dict[str, int], profile: str
) -> None:
    gas = kept[f"packed, transfer, {profile}, makers: {MAKERS}, second fill"]
    assert gas / MAKERS <= SECOND_FILL_MAX


@pytest.mark.parametrize("profile", ["v1", "v2"])
@pytest.mark.parametrize("kind", CALLDATA_KINDS)
@pytest.mark.parametrize(
    ("unit", "ratio_max"),
    [("bytes", CALLDATA_RATIO_MAX), ("bytes not zero", CALLDATA_NOT_ZERO_RATIO_MAX)],
)
def test_a_packed_match_has_a_fifth_of_the_calldata(
    kept: dict[str, int], kind: str, profile: str, unit: str, ratio_max: float
) -> None:
    """Mostly zeros are left out, for which a rollup charges less."""
    packed, plain = (
        kept[f"calldata {unit}, {form}{kind}, {profile}, makers: {MAKERS}"]
        for form in ("matchPacked", "matchOrders")
    )
    assert packed / plain <= ratio_max


@pytest.mark.parametrize("profile", ["v1", "v2"])
@pytest.mark.parametrize("kind", ["transfer", "mint", "merge"])
def test_a_trade_in_a_batch_of_twenty_takers_costs_less_than_one_alone(
    kept: dict[str, int], kind: str, profile: str
) -> None:
    alone = kept[f"match, {kind}, {profile}, makers: 1"]
    batch = kept[f"batch, {kind}, {profile}, takers: {TAKERS}"]
    assert batch / TAKERS <= GAS_RATIO_IN_BATCH_MAX * alone


@pytest.mark.parametrize("profile", ["v1", "v2"])
def test_a_packed_trade_in_a_batch_costs_less_than_one_alone(
    kept: dict[str, int], profile: str
) -> None:
    alone = kept[f"packed, transfer, {profile}, makers: 1"]
    batch = kept[f"batch, packed transfer, {profile}, takers: {TAKERS}"]
    assert batch / TAKERS <= GAS_RATIO_IN_BATCH_MAX * alone


def test_orders_of_contracts_cost_less_packed(kept: dict[str, int]) -> None:
    packed, plain = (
        kept[f"{form}, transfer, type 3, makers: {MAKERS}"] for form in ("packed", "match")
    )
    assert plain - packed >= MAKERS * PACKED_CONTRACT_SAVING_MIN


def test_l8_a_raised_nonce_costs_no_more_than_reading_it(kept: dict[str, int]) -> None:
    """A raised nonce marks the last byte of its address; all addresses with it then pay the read."""
    name = f"packed, transfer, v1, makers: {MAKERS}"
    assert kept[f"{name}, spoilt nonces"] <= kept[name] + (MAKERS + 1) * NONCE_READ_GAS


@pytest.mark.parametrize("profile", ["v1", "v2"])
@pytest.mark.parametrize("kind", ["transfer", "mint", "merge"])
@pytest.mark.parametrize("form", ["match", "packed"])
def test_the_reference_documentation_shows_the_gas_table(
    kept: dict[str, int], form: str, kind: str, profile: str
) -> None:
    one, five, twenty = (kept[f"{form}, {kind}, {profile}, makers: {n}"] for n in (1, 5, 20))
    call = {"match": "matchOrders", "packed": "matchPacked"}[form]
    row = f"| `{call}`, {kind}, {profile} | {one:,} | {five:,} | {twenty:,} | {round(twenty / 20):,} |"
    assert row in (ROOT / "docs" / "reference" / "contracts.md").read_text().splitlines()
