import asyncio
from typing import Any

import pytest
from tests.relayer.rig import RelayerRig, error_of
from tests.rigs.fault_proxy import FaultProxy, Forward, Request, change, lose_request

pytestmark = pytest.mark.anyio


async def test_a_relayer_with_its_chain_is_healthy(rig: RelayerRig) -> None:
    answer = await rig.http.get("/")
    assert (answer.status_code, answer.text) == (200, "OK")
    assert answer.headers["content-type"].startswith("text/plain")


async def test_a_relayer_without_its_chain_is_not_healthy(
    shaky_rig: RelayerRig, proxy: FaultProxy
) -> None:
    proxy.fail_always("eth_chainId", lose_request)
    answer = await shaky_rig.http.get("/")
    assert error_of(answer) == (503, "wallet_service_disabled: the chain does not answer")
    assert answer.headers["retry-after"] == "5"
    assert proxy.url not in answer.text


async def test_a_stalled_node_is_not_waited_for(shaky_rig: RelayerRig, proxy: FaultProxy) -> None:
    released = asyncio.Event()

    async def stall(request: Request, forward: Forward) -> Any:
        await released.wait()
        return await lose_request(request, forward)

    proxy.fail_always("eth_chainId", stall)
    status, words = error_of(await shaky_rig.http.get("/"))
    released.set()
    assert (status, words.partition(":")[0]) == (503, "wallet_service_disabled")


async def test_a_node_of_another_chain_is_refused(shaky_rig: RelayerRig, proxy: FaultProxy) -> None:
    proxy.fail_always("eth_chainId", change(lambda _: "0x89"))
    status, words = error_of(await shaky_rig.http.get("/"))
    assert status == 503
    assert "it serves chain 137, and chain 80002 is required" in words
