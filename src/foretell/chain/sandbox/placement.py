"""Place contracts at given addresses, which no key or salt leads to; only a sandbox allows it.

Clients derive a wallet's address from a factory address that they contain. On a node that allows
writing code, the constructor runs in place: its code is at the address while it is called, so that
its storage and all that it computes from its own address are right. The code that it returns then
replaces it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from foretell.chain.planned_contracts import PlannedContract
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import bytes_of
from foretell.chain.setup_caller import SetupCaller
from foretell.domain.errors.chain import RpcRefused, SandboxOnly
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.hexadecimal import Address

CONSTRUCTOR_GAS: Final = 10_000_000


async def check_sandbox_node(rpc: Rpc) -> None:
    """Refuse a node that is not anvil."""
    try:
        version = str(await rpc.call("web3_clientVersion"))
    except RpcRefused:
        version = "a node that does not give its version"
    if not version.startswith("anvil/"):
        raise SandboxOnly("placing code at a chosen address", version)


async def place_planned(rpc: Rpc, caller: SetupCaller, planned: Iterable[PlannedContract]) -> None:
    """Place the contracts that have a given address; without any, every node is accepted."""
    init_code_by_address = {
        contract.address: contract.init_code
        for contract in planned
        if contract.is_placed and contract.init_code
    }
    if init_code_by_address:
        await place_contracts(rpc, caller, init_code_by_address)


async def place_contracts(
    rpc: Rpc, caller: SetupCaller, init_code_by_address: Mapping[Address, bytes]
) -> None:
    """Place contracts at these addresses, unless they are there already.

    After an interrupted placement the constructor's code is still at the address: it starts again.
    """
    await check_sandbox_node(rpc)
    runtime_by_address: dict[Address, bytes] = {}
    for address, init_code in init_code_by_address.items():
        code = bytes_of(await rpc.call("eth_getCode", address, "latest"), "eth_getCode")
        if code not in {b"", init_code}:
            continue
        await rpc.send("anvil_setCode", address, "0x" + init_code.hex())
        answer = await rpc.call("eth_call", {"from": caller.address, "to": address}, "latest")
        runtime_by_address[address] = bytes_of(answer, "eth_call")
    await caller.call_all(
        [ContractCall(address, b"", CONSTRUCTOR_GAS) for address in runtime_by_address]
    )
    for address, runtime in runtime_by_address.items():
        await rpc.send("anvil_setNonce", address, "0x1")
        await rpc.send("anvil_setCode", address, "0x" + runtime.hex())
