"""Puts contracts at addresses that nobody's key or salt leads to: the sandbox alone can.

Clients derive a wallet's address from a factory's that they carry with them. On a node that lets us
write code, the constructor is run in place: its code stands at the address while it is called, so
that storage and everything that it computes from its own address are right, and what it returns
takes its place.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from foretell.chain.deploy_plan import PlannedContract
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import bytes_of
from foretell.chain.setup_caller import SetupCaller
from foretell.domain.errors.chain import RpcRefused, SandboxOnly
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.hexadecimal import Address

CONSTRUCTOR_GAS: Final = 10_000_000


async def check_sandbox_node(rpc: Rpc) -> None:
    """Refuse a node that is not the sandbox's own kind."""
    try:
        version = str(await rpc.call("web3_clientVersion"))
    except RpcRefused:
        version = "a node that does not say what it is"
    if not version.startswith("anvil/"):
        raise SandboxOnly("code at a chosen address", version)


async def place_planned(rpc: Rpc, caller: SetupCaller, planned: Iterable[PlannedContract]) -> None:
    """Put those contracts that must have a chosen address there; any node will do if none must."""
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
    """Put contracts at these addresses, unless they are there already.

    One that broke off in the middle has its constructor's code there still, and is begun again.
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
