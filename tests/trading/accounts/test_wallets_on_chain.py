"""Contract wallets on a real chain: what they answer is kept until the chain shows that it changed."""

import asyncio
from typing import Final

import msgspec
import pytest
from tests.rigs.clock import Clock
from tests.rigs.orders.version_2 import a_wallet_order
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import a_signed_order, an_address

from foretell.chain.devchain import STATES_KEPT
from foretell.chain.wallet_states import WalletStates
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.safe import OPERATION_DELEGATECALL, SafeTx, sign_safe_tx
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID, SandboxAccount
from foretell.domain.contracts.wallet_state import IMPLEMENTATION_SLOT, BlockMark
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.order import NotWalletOwner, WalletRefuses
from foretell.domain.evm.abi import contract_function
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.values.hexadecimal import Address, Bytes32, address_bytes, keccak256, word_of
from foretell.trading.accounts.wallet_checks import KEPT_MS_MAX, WalletChecks

pytestmark = pytest.mark.anyio

ORDER_ID: Final = Bytes32("0x" + "ab" * 32)
SENTINEL: Final = Address("0x" + "00" * 19 + "01")
SWAP_OWNER: Final = contract_function("swapOwner(address,address,address)")
ADD_OWNER: Final = contract_function("addOwnerWithThreshold(address,uint256)")
STRANGE: Final = Address("0x" + "5a" * 20)
UPGRADED: Final = keccak256(b"Upgraded(address)").hex()
FICKLE: Final = (
    "36602e57"  # with calldata, answer
    "60016001557f" + UPGRADED + "5f5fa100"  # without: say no from now on, and log an upgrade
    "5b600154604357631626ba7e60e01b5f5260205ff3"
    "5b5f5ffd"
)


@pytest.fixture
def checks(fresh_sandbox: Sandbox) -> WalletChecks:
    states = WalletStates(fresh_sandbox.rpc, fresh_sandbox.deployment)
    return WalletChecks(states, Clock().now_ms)


@pytest.fixture
def states(fresh_sandbox: Sandbox) -> WalletStates:
    return WalletStates(fresh_sandbox.rpc, fresh_sandbox.deployment)


def of_safe(owner: SandboxAccount, safe: Address) -> SignedOrder:
    order = a_signed_order("alice", maker=safe, signature_type=SignatureType.SAFE)
    return msgspec.structs.replace(order, signer=owner.address)


async def is_asked(checks: WalletChecks, order: SignedOrder) -> bool:
    pending = checks.pending(order, ORDER_ID)
    if pending is not None:
        await pending
    return pending is not None


async def execute(sandbox: Sandbox, owner: SandboxAccount, safe: Address, calldata: bytes) -> None:
    """Have a Safe call itself."""
    state = await sandbox.reader.safe(safe)
    assert state is not None
    made = SafeTx(safe, safe, calldata, state.nonce)
    signature = sign_safe_tx(made.digest(SANDBOX_CHAIN_ID), owner.private_key)
    await sandbox.call(owner, safe, made.encode(signature))


@pytest.mark.case("C-06")
async def test_the_order_after_an_owner_was_removed_is_refused_at_once(
    fresh_sandbox: Sandbox, checks: WalletChecks
) -> None:
    owner, other = fresh_sandbox.trader(0), fresh_sandbox.trader(1)
    safe = await fresh_sandbox.make_safe(owner)
    await checks.watch()
    assert await is_asked(checks, of_safe(owner, safe))
    await fresh_sandbox.mine(2)
    await checks.watch()
    assert not await is_asked(checks, of_safe(owner, safe))
    swap = SWAP_OWNER.encode(SENTINEL, owner.address, other.address)
    await execute(fresh_sandbox, owner, safe, swap)
    await checks.watch()
    with pytest.raises(NotWalletOwner):
        await is_asked(checks, of_safe(owner, safe))


@pytest.mark.case("C-06")
async def test_the_order_after_a_second_signature_became_needed_is_refused_at_once(
    fresh_sandbox: Sandbox, checks: WalletChecks
) -> None:
    owner, other = fresh_sandbox.trader(0), fresh_sandbox.trader(1)
    safe = await fresh_sandbox.make_safe(owner)
    await execute(fresh_sandbox, owner, safe, ADD_OWNER.encode(other.address, 1))
    assert await is_asked(checks, of_safe(owner, safe))
    await execute(fresh_sandbox, owner, safe, ADD_OWNER.encode(fresh_sandbox.trader(2).address, 2))
    await checks.watch()
    with pytest.raises(NotWalletOwner):
        await is_asked(checks, of_safe(owner, safe))


@pytest.mark.case("C-06")
async def test_a_safe_that_is_deployed_is_asked_again(
    fresh_sandbox: Sandbox, checks: WalletChecks
) -> None:
    owner = fresh_sandbox.trader(0)
    safe = fresh_sandbox.deployment.safe_of(owner.address)
    assert await is_asked(checks, of_safe(owner, safe))
    assert not await is_asked(checks, of_safe(owner, safe))
    await fresh_sandbox.make_safe(owner)
    await checks.watch()
    assert await is_asked(checks, of_safe(owner, safe))


@pytest.mark.case("C-05")
async def test_an_upgrade_has_the_wallet_asked_again(
    fresh_sandbox: Sandbox, checks: WalletChecks
) -> None:
    """A wallet that says yes and then no: its next order is refused, as soon as the upgrade is in a block."""
    rpc, other = fresh_sandbox.rpc, fresh_sandbox.trader(1)
    await rpc.send("anvil_setCode", STRANGE, "0x" + FICKLE)
    order = a_wallet_order("alice", STRANGE)
    safe = await fresh_sandbox.make_safe(other)
    assert await is_asked(checks, order)
    assert await is_asked(checks, of_safe(other, safe))
    await fresh_sandbox.call(other, STRANGE, b"")
    await checks.watch()
    with pytest.raises(WalletRefuses):
        await is_asked(checks, order)
    assert not await is_asked(checks, of_safe(other, safe))


@pytest.mark.case("C-06")
async def test_a_reorg_has_every_wallet_asked_again(
    fresh_sandbox: Sandbox, checks: WalletChecks
) -> None:
    rpc, owner = fresh_sandbox.rpc, fresh_sandbox.trader(0)
    before = await rpc.send("evm_snapshot")
    safe = await fresh_sandbox.make_safe(owner)
    await is_asked(checks, of_safe(owner, safe))
    await checks.watch()
    await rpc.send("evm_revert", before)
    await rpc.send("evm_increaseTime", 7)
    await fresh_sandbox.mine(5)
    await checks.watch()
    assert len(checks) == 0


async def test_the_state_of_a_wallet_names_the_code_that_runs(
    fresh_sandbox: Sandbox, states: WalletStates
) -> None:
    sandbox, owner = fresh_sandbox, fresh_sandbox.trader(0)
    contracts = sandbox.deployment.contracts
    safe = await states.read(await sandbox.make_safe(owner))
    singleton = contracts[ContractName.SAFE_SINGLETON]
    assert safe.key.implementation_hash == singleton.code_hash
    assert safe.watched == (sandbox.deployment.safe_of(owner.address), singleton.address)
    assert (safe.is_owned_by(owner.address), safe.shows_changes) == (True, True)
    for factory in (0, 1):
        address = await sandbox.make_deposit_wallet(owner.address, factory)
        wallet = await states.read(address)
        code = contracts[ContractName.DEPOSIT_WALLET]
        beacon = contracts[ContractName.DEPOSIT_WALLET_BEACON].address
        assert wallet.key.implementation_hash == code.code_hash
        assert wallet.watched == (address, beacon, code.address)
        assert (wallet.is_owned_by(owner.address), wallet.shows_changes) == (True, True)
        own_code = await sandbox.reader.code(address)
        assert wallet.key.code_hash == word_of(keccak256(own_code))


async def test_a_proxy_of_other_code_is_known_by_what_it_runs(
    fresh_sandbox: Sandbox, states: WalletStates
) -> None:
    rpc = fresh_sandbox.rpc
    code = fresh_sandbox.deployment.collateral
    code_hash = fresh_sandbox.deployment.contracts[ContractName.COLLATERAL].code_hash
    clone = "363d3d373d3d3d363d73" + code[2:] + "5af43d82803e903d91602b57fd5bf3"
    await rpc.send("anvil_setCode", STRANGE, "0x" + clone)
    state = await states.read(STRANGE)
    assert (state.key.implementation_hash, state.watched) == (code_hash, (STRANGE, code))
    await rpc.send("anvil_setCode", STRANGE, "0x" + FICKLE)
    word = "0x" + address_bytes(code).rjust(32, b"\0").hex()
    await rpc.send("anvil_setStorageAt", STRANGE, IMPLEMENTATION_SLOT, word)
    state = await states.read(STRANGE)
    assert (state.key.implementation_hash, state.watched) == (code_hash, (STRANGE, code))
    assert (state.shows_changes, state.key.owners, state.key.threshold) == (False, (), 0)


HOSTILE: Final = {
    "reverts": "5f5ffd",
    "burns its gas": "5b5f56",
    "is no code": "fe",
    "says nothing": "00",
    "answers as much as its gas pays for": "6203d0905ff3",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.case("C-05")
async def test_a_hostile_wallet_costs_bounded_calls_and_only_itself(
    fresh_sandbox: Sandbox, checks: WalletChecks, name: str
) -> None:
    owner = fresh_sandbox.trader(0)
    safe = await fresh_sandbox.make_safe(owner)
    await fresh_sandbox.rpc.send("anvil_setCode", STRANGE, "0x" + HOSTILE[name])
    orders = [a_wallet_order("alice", STRANGE), of_safe(owner, STRANGE)]
    refused = await asyncio.gather(
        *(is_asked(checks, order) for order in orders),
        is_asked(checks, of_safe(owner, safe)),
        return_exceptions=True,
    )
    assert [isinstance(each, Exception) for each in refused] == [True, True, False], refused


REPLACED: Final = {
    **HOSTILE,
    "answers 96 KiB": "620180005ff3",
    "reverts with 96 KiB": "620180005ffd",
}


@pytest.mark.parametrize("name", REPLACED)
@pytest.mark.case("C-06")
async def test_guard_a_safe_that_replaced_its_code_without_a_log_does_not_keep_its_approval(
    fresh_sandbox: Sandbox, name: str
) -> None:
    """Its owner has it run code that writes the place of its singleton, which logs nothing of that."""
    sandbox, clock, owner = fresh_sandbox, Clock(), fresh_sandbox.trader(0)
    checks = WalletChecks(WalletStates(sandbox.rpc, sandbox.deployment), clock.now_ms)
    safe = await sandbox.make_safe(owner)
    assert await is_asked(checks, of_safe(owner, safe))
    await sandbox.rpc.send("anvil_setCode", STRANGE, "0x" + REPLACED[name])
    setter = an_address("setter")
    await sandbox.rpc.send("anvil_setCode", setter, f"0x73{STRANGE[2:]}5f5500")
    made = SafeTx(safe, setter, b"", 0, OPERATION_DELEGATECALL)
    signature = sign_safe_tx(made.digest(SANDBOX_CHAIN_ID), owner.private_key)
    await sandbox.call(owner, safe, made.encode(signature))
    await checks.watch()
    clock.move(KEPT_MS_MAX)
    await checks.watch()
    for _ in range(2):
        with pytest.raises(NotWalletOwner):
            await is_asked(checks, of_safe(owner, safe))


@pytest.mark.parametrize("name", REPLACED)
@pytest.mark.case("C-05")
async def test_guard_a_wallet_that_answers_more_than_a_word_or_breaks_off_refuses(
    fresh_sandbox: Sandbox, states: WalletStates, name: str
) -> None:
    await fresh_sandbox.rpc.send("anvil_setCode", STRANGE, "0x" + REPLACED[name])
    state = await states.read(STRANGE)
    assert (state.has_code, state.key.owners, state.key.threshold) == (True, (), 0)
    assert not await states.accepts(state, STRANGE, bytes(32), bytes(317))


async def test_a_node_without_the_block_is_no_refusal_of_the_wallet(
    fresh_sandbox: Sandbox, states: WalletStates
) -> None:
    wallet = await fresh_sandbox.make_deposit_wallet(fresh_sandbox.trader(0).address)
    state = await states.read(wallet)
    gone = state._replace(block=BlockMark(state.block.block_number, Bytes32("0x" + "12" * 32)))
    assert not await states.accepts(state, wallet, bytes(32), bytes(317))
    with pytest.raises(ChainUnavailable, match="does not have the block"):
        await states.accepts(gone, wallet, bytes(32), bytes(317))
    await fresh_sandbox.mine(STATES_KEPT + 2)
    with pytest.raises(ChainUnavailable, match="does not have the block"):
        await states.accepts(state, wallet, bytes(32), bytes(317))


async def test_logs_beyond_the_bound_have_every_wallet_asked_again(
    fresh_sandbox: Sandbox, states: WalletStates
) -> None:
    head = (await states.read(STRANGE)).block
    await fresh_sandbox.mine()
    found = await states.changes(head, [STRANGE])
    assert found.changed == frozenset()
    far = BlockMark(head.block_number + 9_999, head.block_hash)
    assert (await states.changes(far, [STRANGE])).changed is None
