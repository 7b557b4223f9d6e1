"""A chain with all contracts, one market, and traders with collateral and tokens."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from foretell.app.gateway import bind
from foretell.chain.deploy import deploy
from foretell.chain.devchain import PULSE_S, DevChain, DevChainOptions, find_anvil
from foretell.chain.rpc import Rpc
from foretell.chain.sandbox.plan import sandbox_plan
from foretell.chain.setup_caller import SetupCaller
from foretell.domain.contracts.calldata import (
    ALLOWANCE_UNITS_MAX,
    MINT,
    Approve,
    ClientCall,
    SetApprovalForAll,
    SplitPosition,
    encode_register_token,
)
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.sandbox_accounts import (
    SANDBOX_CHAIN_ID,
    AccountRole,
    sandbox_account,
)
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import (
    Address,
    Bytes32,
    keccak256,
    word_bytes,
    word_of,
)
from foretell.domain.values.tokens import TokenPair, condition_id, token_pair
from foretell.settings import Settings

FUNDS_UNITS: Final = 10**12
COIN_WEI: Final = 10**24
CALL_GAS: Final = 500_000
SLOTS: Final = 2
PID_FILE: Final = "anvil.pid"
_PREPARE: Final = contract_function("prepareCondition(address,bytes32,uint256)")


class ChainTrader(NamedTuple):
    """A trader's key and account."""

    private_key: bytes
    address: Address


class SettleChain(NamedTuple):
    """A running chain, its contracts, a condition that is traded there, and the traders."""

    devchain: DevChain
    rpc: Rpc
    process_id: int
    deployment: Deployment
    question_id: Bytes32
    condition_id: Bytes32
    tokens: TokenPair
    traders: Sequence[ChainTrader]

    @property
    def rpc_url(self) -> str:
        """The address of the node."""
        return self.devchain.rpc_url


@contextlib.asynccontextmanager
async def settle_chain(
    folder: Path, traders: int, kept_pulse_s: float | None = None
) -> AsyncIterator[SettleChain]:
    """Give a chain that mines each transaction at once; it ends with the block.

    With `kept_pulse_s` it is like a sandbox's: its state is kept, and it mines at this pulse.
    """
    settings = Settings()
    with contextlib.closing(bind("127.0.0.1", 0, "the chain's port")) as listener:
        port = listener.getsockname()[1]
    options = DevChainOptions(
        anvil=find_anvil(settings.anvil, settings.npm_folder),
        folder=folder / "chain",
        chain_id=SANDBOX_CHAIN_ID,
        port=port,
        is_instant=kept_pulse_s is None,
        is_kept=kept_pulse_s is not None,
        pulse_s=PULSE_S if kept_pulse_s is None else kept_pulse_s,
    )
    devchain = DevChain(options)
    await devchain.start()
    try:
        async with Rpc(devchain.rpc_url) as rpc:
            plan = sandbox_plan(settings.npm_folder)
            deployment = await deploy(rpc, plan, folder / "deployment.json")
            process_id = int((options.folder / PID_FILE).read_text())
            yield await _opened(devchain, rpc, process_id, deployment, traders)
    finally:
        await devchain.stop()


async def _opened(
    devchain: DevChain, rpc: Rpc, process_id: int, deployment: Deployment, traders: int
) -> SettleChain:
    """Prepare a condition, register its tokens, and give the traders what they trade with."""
    admin = sandbox_account(AccountRole.ADMIN, SANDBOX_CHAIN_ID)
    question = word_of(keccak256(b"bench settle"))
    condition = condition_id(admin.address, question)
    tokens = token_pair(deployment.collateral, condition)
    prepared = _PREPARE.encode(admin.address, word_bytes(question), SLOTS)
    await _caller(rpc, admin.private_key).call(deployment.conditional_tokens, prepared)
    registrar = sandbox_account(AccountRole.REGISTRAR, SANDBOX_CHAIN_ID)
    registered = encode_register_token(tokens, condition)
    await _caller(rpc, registrar.private_key).call(deployment.exchange, registered)
    keys = [keccak256(b"bench settle trader %d" % number) for number in range(traders)]
    accounts = [ChainTrader(key, address_of_key(key)) for key in keys]
    faucet = sandbox_account(AccountRole.FAUCET, SANDBOX_CHAIN_ID)
    minted = [MINT.encode(account.address, 2 * FUNDS_UNITS) for account in accounts]
    await _caller(rpc, faucet.private_key).call_all(
        [ContractCall(deployment.collateral, each, CALL_GAS) for each in minted]
    )
    for account in accounts:
        await rpc.send("anvil_setBalance", account.address, hex(COIN_WEI))
        await _caller(rpc, account.private_key).call_all(_endowment(deployment, condition))
    return SettleChain(devchain, rpc, process_id, deployment, question, condition, tokens, accounts)


def _caller(rpc: Rpc, private_key: bytes) -> SetupCaller:
    return SetupCaller(rpc, private_key, SANDBOX_CHAIN_ID, mines=True)


def _endowment(deployment: Deployment, condition: Bytes32) -> list[ContractCall]:
    """Return the calls that split half of a trader's collateral and approve the exchange."""
    collateral, tokens = deployment.collateral, deployment.conditional_tokens
    exchange = deployment.exchange
    calls: list[tuple[Address, ClientCall]] = [
        (collateral, Approve(tokens, FUNDS_UNITS)),
        (tokens, SplitPosition(collateral, condition, FUNDS_UNITS)),
        (collateral, Approve(exchange, ALLOWANCE_UNITS_MAX)),
        (tokens, SetApprovalForAll(exchange, is_approved=True)),
    ]
    return [ContractCall(target, call.encode(), CALL_GAS) for target, call in calls]
