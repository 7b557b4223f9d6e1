"""A signer's transactions on a real chain: stored first, sent once, never waited for in vain."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import an_address
from typing_extensions import override

from foretell.chain.artifacts import own_artifact
from foretell.domain.contracts.calldata import Approve, Transfer
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.errors.chain import (
    CallFailed,
    ChainUnavailable,
    ExecutionReverted,
    TransactionReplaced,
)
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.hexadecimal import parse_address
from foretell.sdk import chain
from foretell.sdk.chain import ChainAccount, StoredTx
from foretell.sdk.json_rpc import JsonRpc
from foretell.sdk.signing.signers import KeySigner

pytestmark = pytest.mark.anyio

ALLOWANCE = contract_function("allowance(address,address)", "(uint256)")
BALANCE = contract_function("balanceOf(address)", "(uint256)")
CREATOR = contract_function("creator()", "(address)")
SPENDER = an_address("spender")


@pytest.fixture
async def account(fresh_sandbox: Sandbox) -> AsyncIterator[ChainAccount]:
    async with JsonRpc(fresh_sandbox.rpc_url) as rpc:
        signer = KeySigner(fresh_sandbox.trader().private_key)
        yield ChainAccount(rpc, signer, SANDBOX_CHAIN_ID)


def approve(sandbox: Sandbox, units: int) -> ContractCall:
    return ContractCall(sandbox.deployment.collateral, Approve(SPENDER, units).encode())


async def allowed(sandbox: Sandbox, account: ChainAccount) -> int:
    return int(
        await account.read(sandbox.deployment.collateral, ALLOWANCE, account.address, SPENDER)
    )


async def nonce(account: ChainAccount) -> int:
    answer = await account.rpc.call("eth_getTransactionCount", account.address, "latest")
    return int(answer, 16)


async def test_a_call_is_stored_before_it_is_sent(
    fresh_sandbox: Sandbox, account: ChainAccount
) -> None:
    stored: list[StoredTx] = []
    before = await nonce(account)
    receipt = await account.call(approve(fresh_sandbox, 7), stored.append)
    assert [each.tx_hash for each in stored] == [receipt.tx_hash]
    assert (stored[0].account_nonce, receipt.is_success) == (before, True)
    assert await allowed(fresh_sandbox, account) == 7


async def test_the_same_transaction_is_sent_any_number_of_times_and_happens_once(
    fresh_sandbox: Sandbox, account: ChainAccount
) -> None:
    call = approve(fresh_sandbox, 8)
    stored = await account.sign(call.target, call)
    before = await nonce(account)
    receipts = [await account.send(stored) for _ in range(3)]
    assert receipts[0] == receipts[1] == receipts[2]
    assert await nonce(account) == before + 1


class LateReceipts(JsonRpc):
    """A node that has a receipt some answers after it counts the nonce."""

    answers_without = 5

    @override
    async def call(self, method: str, *params: object) -> Any:
        if method == "eth_getTransactionReceipt" and self.answers_without:
            self.answers_without -= 1
            return None
        return await super().call(method, *params)


async def test_a_transaction_whose_receipt_comes_after_its_nonce_is_not_replaced(
    fresh_sandbox: Sandbox,
) -> None:
    """A finding: a creation signed the call again, which then reverted: its market had been made already."""
    async with LateReceipts(fresh_sandbox.rpc_url) as rpc:
        signer = KeySigner(fresh_sandbox.trader().private_key)
        account = ChainAccount(rpc, signer, SANDBOX_CHAIN_ID)
        before = await nonce(account)
        assert (await account.call(approve(fresh_sandbox, 12))).is_success
        assert (rpc.answers_without, await nonce(account)) == (0, before + 1)


async def test_a_transaction_whose_nonce_is_used_is_not_waited_for(
    fresh_sandbox: Sandbox, account: ChainAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "REPLACED_AFTER_S", 0.2)
    late, other = approve(fresh_sandbox, 9), approve(fresh_sandbox, 10)
    stored = await account.sign(late.target, late)
    await account.call(other)
    with pytest.raises(TransactionReplaced, match=stored.tx_hash):
        await account.send(stored)
    assert await allowed(fresh_sandbox, account) == 10


async def test_a_call_that_reverts_is_refused_before_and_after_it_is_sent(
    fresh_sandbox: Sandbox, account: ChainAccount
) -> None:
    too_much = ContractCall(fresh_sandbox.deployment.collateral, Transfer(SPENDER, 10**30).encode())
    with pytest.raises(ExecutionReverted):
        await account.call(too_much)
    with pytest.raises(CallFailed):
        await account.call(too_much._replace(gas=200_000))


async def test_a_contract_is_deployed_and_read(account: ChainAccount) -> None:
    code = own_artifact("ProposerWhitelist").init_code(account.address, [SPENDER])
    made = parse_address((await account.deploy(code)).contract)
    assert parse_address(await account.read(made, CREATOR)) == account.address
    coins = await account.coins_wei()
    await account.call_all([ContractCall(SPENDER, b"", value_wei=5)])
    assert await account.coins_wei() < coins - 5


async def test_a_transaction_that_no_block_takes_is_given_up_at_its_deadline(
    fresh_sandbox: Sandbox, account: ChainAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "RECEIPT_DEADLINE_S", 0.3)
    await fresh_sandbox.rpc.send("evm_setAutomine", *[False])
    try:
        with pytest.raises(ChainUnavailable, match=r"is in no block after 0\.3 s"):
            await account.call(approve(fresh_sandbox, 11))
    finally:
        await fresh_sandbox.rpc.send("evm_setAutomine", *[True])
    assert await account.read(fresh_sandbox.deployment.collateral, BALANCE, account.address)
