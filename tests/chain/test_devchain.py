import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import NPM_FOLDER
from tests.rigs.ports import free_port

from foretell.chain.devchain import CONFIRMING_BLOCKS, DevChain, DevChainOptions, find_anvil
from foretell.chain.rpc import Rpc
from foretell.domain.contracts.sandbox_accounts import SANDBOX_ACCOUNTS
from foretell.domain.errors.chain import ChainUnavailable, DevChainFailed, ProgramMissing

pytestmark = pytest.mark.anyio

PAYER = SANDBOX_ACCOUNTS[0].address
PAYEE = "0x" + "4e" * 20
SEALED = 100

MakeOptions = Callable[..., DevChainOptions]


@pytest.fixture
def make_options(devchain_options: DevChainOptions, tmp_path: Path) -> MakeOptions:
    def make(**changed: object) -> DevChainOptions:
        options = replace(devchain_options, folder=tmp_path / "chain", port=free_port())
        return replace(options, **changed)  # type: ignore[arg-type]  # each by its name

    return make


async def pay(rpc: Rpc) -> str:
    return str(await rpc.send("eth_sendTransaction", {"from": PAYER, "to": PAYEE, "value": "0x5"}))


async def wait_until(rpc: Rpc, wanted: int) -> None:
    async with asyncio.timeout(20):
        while int(await rpc.call("eth_blockNumber"), 16) < wanted:  # noqa: ASYNC110 - the node tells nobody
            await asyncio.sleep(0.05)


async def test_a_chain_seals_what_waits_and_the_blocks_that_confirm_it_and_then_rests(
    make_options: MakeOptions,
) -> None:
    chain = DevChain(make_options(is_instant=False))
    await chain.start()
    try:
        async with Rpc(chain.rpc_url) as rpc:
            await pay(rpc)
            await wait_until(rpc, 1 + CONFIRMING_BLOCKS)
            await asyncio.sleep(1.5)
            assert int(await rpc.call("eth_blockNumber"), 16) == 1 + CONFIRMING_BLOCKS
            assert await rpc.call("eth_getBalance", PAYEE, "latest") == "0x5"
    finally:
        await chain.stop()


async def test_a_view_is_answered_though_a_block_is_sealed_meanwhile(
    make_options: MakeOptions,
) -> None:
    chain = DevChain(make_options())
    await chain.start()
    view = ("eth_call", {"to": PAYEE, "data": "0x"}, "latest")
    try:
        async with Rpc(chain.rpc_url) as rpc:

            async def ask_often() -> list[str]:
                return [await rpc.send(*view) for _ in range(SEALED)]

            async def seal() -> None:
                for _ in range(SEALED):
                    await rpc.send("evm_mine")

            *answers, _ = await asyncio.gather(*(ask_often() for _ in range(6)), seal())
    finally:
        await chain.stop()
    assert answers == [["0x"] * SEALED] * 6


async def test_a_chain_that_is_kept_goes_on_where_it_stopped(make_options: MakeOptions) -> None:
    options = make_options(is_kept=True)
    chain = DevChain(options)
    await chain.start()
    async with Rpc(chain.rpc_url) as rpc:
        await pay(rpc)
        await wait_until(rpc, 1)
    await chain.stop()
    await chain.start()
    try:
        async with Rpc(chain.rpc_url) as rpc:
            assert await rpc.call("eth_getBalance", PAYEE, "latest") == "0x5"
    finally:
        await chain.stop()


async def test_a_chain_that_an_earlier_process_left_is_ended_first(
    make_options: MakeOptions,
) -> None:
    options = make_options(is_kept=True)
    left = DevChain(options)
    await left.start()
    heir = DevChain(replace(options, port=free_port()))
    await heir.start()
    try:
        assert await left.wait() is not None
        async with Rpc(left.rpc_url) as rpc:
            with pytest.raises(ChainUnavailable):
                await rpc.send("eth_chainId")
    finally:
        await heir.stop()
        await left.stop()


async def test_a_chain_ends_when_whoever_started_it_is_gone(make_options: MakeOptions) -> None:
    chain = DevChain(make_options())
    await chain.start()
    pid = int((await asyncio.to_thread((chain._options.folder / "anvil.pid").read_text)).strip())
    assert chain._process is not None
    assert chain._process.stdin is not None
    chain._process.stdin.close()
    await asyncio.wait_for(chain.wait(), 10)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    await chain.stop()


async def test_a_chain_that_cannot_start_says_so(make_options: MakeOptions, tmp_path: Path) -> None:
    broken = tmp_path / "anvil"
    await asyncio.to_thread(broken.write_text, "#!/bin/sh\nexit 7\n")
    await asyncio.to_thread(broken.chmod, 0o755)
    with pytest.raises(DevChainFailed, match="7"):
        await DevChain(make_options(anvil=broken)).start()


def test_anvil_is_the_one_named_or_the_one_that_npm_installed(anvil: Path, tmp_path: Path) -> None:
    assert find_anvil(anvil, tmp_path) == anvil
    assert find_anvil(None, NPM_FOLDER) == anvil
    with pytest.raises(ProgramMissing, match="anvil"):
        find_anvil(tmp_path / "nothing", tmp_path)
