import pytest
from tests.relayer.rig import OwnerClient, Station, an_approval
from tests.relayer.strange_safes import make_strange
from tests.rigs.values import an_address

from foretell.domain.values.hexadecimal import checksum_address

pytestmark = pytest.mark.anyio


async def nonce_of(station: Station, address: str) -> str:
    answer = await station.http.get("/nonce", params={"address": address, "type": "SAFE"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["nonce"])


@pytest.mark.spec(110)
async def test_a_wallet_that_is_not_there_begins_at_zero(
    station: Station, newcomer: OwnerClient
) -> None:
    assert await nonce_of(station, checksum_address(newcomer.address)) == "0"
    await newcomer.submitted(newcomer.create_body())
    assert await nonce_of(station, newcomer.address) == "0"


@pytest.mark.spec(110)
async def test_a_wallet_may_be_asked_for_by_its_own_address(
    station: Station, owner: OwnerClient
) -> None:
    collateral = station.sandbox.deployment.collateral
    await station.automine(is_on=False)
    await owner.submitted(await owner.call_body(collateral, an_approval(station)))
    assert await nonce_of(station, owner.safe) == "1"
    await station.sandbox.mine()
    assert await nonce_of(station, owner.safe) == "1"
    assert await nonce_of(station, owner.address) == "1"


async def test_what_the_owner_does_past_the_relayer_counts(
    station: Station, owner: OwnerClient
) -> None:
    collateral = station.sandbox.deployment.collateral
    await owner.execute_alone(collateral, an_approval(station).encode())
    assert await nonce_of(station, owner.address) == "1"
    await owner.submitted(await owner.call_body(collateral, an_approval(station)))
    await station.settle()
    assert await nonce_of(station, owner.address) == "2"


async def test_what_came_to_nothing_does_not_count(station: Station, owner: OwnerClient) -> None:
    collateral = station.sandbox.deployment.collateral
    await station.automine(is_on=False)
    await owner.submitted(await owner.call_body(collateral, an_approval(station)))
    await make_strange(station.sandbox, owner.safe, b"\xfe")
    await station.settle()
    assert await nonce_of(station, owner.address) == "0"


async def test_a_contract_that_is_no_wallet_has_none(station: Station) -> None:
    assert await nonce_of(station, station.sandbox.deployment.collateral) == "0"
    assert await nonce_of(station, an_address("nobody")) == "0"
