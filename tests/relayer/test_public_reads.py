"""Reads of the chain that anyone may ask the relayer for have places of their own."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.relayer.rig import OwnerClient, RelayerRig, error_of
from tests.rigs.values import an_address

from foretell.chain.reader import Reader
from foretell.domain.errors.storage import ReadsBusy

pytestmark = pytest.mark.anyio

WALLET: dict[str, str] = {"address": an_address("wallet")}


@contextlib.asynccontextmanager
async def full(method: str) -> AsyncIterator[None]:
    """Refuse a read, as when all places are taken."""
    if method:
        raise ReadsBusy(4)
    yield


@pytest.fixture
def besieged_rig(rig: RelayerRig) -> RelayerRig:
    """Give a relayer whose places for strangers are all taken."""
    rpc, deployment = rig.sandbox.rpc, rig.sandbox.deployment
    rig.open(replace(rig.context, reader=Reader(rpc, deployment, rpc.behind(full))))
    return rig


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/deployed", {}),
        ("/nonce", {"type": "SAFE"}),
        ("/nonce", {"type": "PROXY"}),
        ("/relay-payload", {"type": "SAFE"}),
    ],
)
async def test_a_stranger_without_a_place_is_asked_to_come_again(
    besieged_rig: RelayerRig, path: str, query: dict[str, str]
) -> None:
    answer = await besieged_rig.http.get(path, params=WALLET | query)
    assert error_of(answer) == (
        503,
        "reads_busy: too many reads are running; send this one again in 4 s",
    )
    assert answer.headers["retry-after"] == "4"


async def test_strangers_keep_no_owner_from_the_chain_and_no_program_from_the_health(
    besieged_rig: RelayerRig, owner: OwnerClient
) -> None:
    assert (await besieged_rig.http.get("/")).status_code == 200
    answer = await owner.get("/v1/account/transactions/params", **WALLET, type="SAFE")
    assert (answer.status_code, answer.json()["nonce"]) == (200, "0")
