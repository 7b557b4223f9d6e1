import pytest
from tests.relayer.rig import OwnerClient, RelayerRig, an_approval
from tests.relayer.strange_safes import make_strange
from tests.rigs.values import an_address

from foretell.domain.values.hexadecimal import checksum_address

pytestmark = pytest.mark.anyio


async def nonce_of(rig: RelayerRig, address: str) -> str:
    answer = await rig.http.get("/nonce", params={"address": address, "type": "SAFE"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["nonce"])


@pytest.mark.spec(110)
async def test_the_nonce_of_a_wallet_that_is_not_deployed_is_zero(
    rig: RelayerRig, newcomer: OwnerClient
) -> None:
    assert await nonce_of(rig, checksum_address(newcomer.address)) == "0"
    await newcomer.submitted(newcomer.create_body())
    assert await nonce_of(rig, newcomer.address) == "0"


@pytest.mark.spec(110)
async def test_a_nonce_is_found_by_the_wallet_s_own_address(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    collateral = rig.sandbox.deployment.collateral
    await rig.automine(is_on=False)
    await owner.submitted(await owner.call_body(collateral, an_approval(rig)))
    assert await nonce_of(rig, owner.safe) == "1"
    await rig.sandbox.mine()
    assert await nonce_of(rig, owner.safe) == "1"
    assert await nonce_of(rig, owner.address) == "1"


@pytest.mark.case("E-04")
async def test_transactions_that_bypass_the_relayer_count(
    rig: RelayerRig, owner: OwnerClient
) -> None:
    collateral = rig.sandbox.deployment.collateral
    await owner.execute_alone(collateral, an_approval(rig).encode())
    assert await nonce_of(rig, owner.address) == "1"
    await owner.submitted(await owner.call_body(collateral, an_approval(rig)))
    await rig.settle()
    assert await nonce_of(rig, owner.address) == "2"


async def test_refused_requests_do_not_count(rig: RelayerRig, owner: OwnerClient) -> None:
    collateral = rig.sandbox.deployment.collateral
    await rig.automine(is_on=False)
    await owner.submitted(await owner.call_body(collateral, an_approval(rig)))
    await make_strange(rig.sandbox, owner.safe, b"\xfe")
    await rig.settle()
    assert await nonce_of(rig, owner.address) == "0"


async def test_a_contract_that_is_no_wallet_has_none(rig: RelayerRig) -> None:
    assert await nonce_of(rig, rig.sandbox.deployment.collateral) == "0"
    assert await nonce_of(rig, an_address("nobody")) == "0"
