import asyncio

import pytest
from eth_account import Account
from tests.rigs.sandbox import Sandbox
from tests.web.contexts import HOST, TOKEN

from foretell.chain.setup_caller import wait_for_receipts
from foretell.domain.contracts.calldata import Transfer
from foretell.domain.contracts.sandbox_accounts import SANDBOX_ACCOUNTS, AccountRole
from foretell.domain.errors.chain import SandboxOnly
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import MalformedBody
from foretell.domain.errors.web import ForeignHost, UnknownWallet, WalletBusy, WrongSandboxToken
from foretell.domain.values.hexadecimal import parse_bytes32
from foretell.web import sandbox_wallets
from foretell.web.sandbox_wallets import (
    ChainRequest,
    SandboxWallets,
    SendRequest,
    SignRequest,
    Visitor,
)

pytestmark = pytest.mark.anyio

DIGEST = "0x" + "ab" * 32
OWN = Visitor(HOST, f"http://{HOST}", TOKEN)


def test_the_sandboxs_own_page_with_its_token_is_admitted(wallets: SandboxWallets) -> None:
    wallets.check(OWN)
    wallets.check(OWN._replace(origin=None))


@pytest.mark.parametrize(
    ("visitor", "refusal"),
    [
        (OWN._replace(host="rebound.example"), ForeignHost),
        (OWN._replace(host=""), ForeignHost),
        (OWN._replace(origin="http://evil.example"), ForeignHost),
        (OWN._replace(origin="null"), ForeignHost),
        (OWN._replace(origin=f"https://{HOST}"), ForeignHost),
        (OWN._replace(token=""), WrongSandboxToken),
        (OWN._replace(token=TOKEN[:-1]), WrongSandboxToken),
        (OWN._replace(token="é" * 64), WrongSandboxToken),
    ],
)
def test_everybody_else_is_refused(
    wallets: SandboxWallets, visitor: Visitor, refusal: type[ForetellError]
) -> None:
    with pytest.raises(refusal):
        wallets.check(visitor)


def test_accounts_that_products_send_from_are_no_wallets(wallets: SandboxWallets) -> None:
    listed = wallets.accounts()
    assert {each.role for each in listed} == {"trader", "creator", "proposer"}
    assert [each.role for each in listed[:8]] == ["trader"] * 8
    for account in SANDBOX_ACCOUNTS:
        if account.role in {AccountRole.OPERATOR, AccountRole.RELAYER, AccountRole.FAUCET}:
            with pytest.raises(UnknownWallet):
                wallets.sign(SignRequest(account.address, DIGEST))


def test_a_wallets_signature_is_its_own(wallets: SandboxWallets, sandbox: Sandbox) -> None:
    signature = wallets.sign(SignRequest(sandbox.trader().address, DIGEST))
    signer = Account._recover_hash(bytes.fromhex(DIGEST[2:]), signature=signature)
    assert signer.lower() == sandbox.trader().address


def test_another_chain_than_the_sandboxs_has_no_such_wallets(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxOnly):
        SandboxWallets(sandbox.rpc, 1, TOKEN, [HOST])


async def test_transactions_sent_at_once_are_all_mined(
    wallets: SandboxWallets, fresh_sandbox: Sandbox
) -> None:
    sender, receiver = fresh_sandbox.trader(0).address, fresh_sandbox.trader(1).address
    before = await fresh_sandbox.reader.collateral_units(receiver)
    request = SendRequest(
        sender, fresh_sandbox.deployment.collateral, "0x" + Transfer(receiver, 7).encode().hex()
    )
    hashes = await asyncio.gather(*(wallets.send(request) for _ in range(3)))
    await fresh_sandbox.rpc.send("evm_mine")
    receipts = await wait_for_receipts(
        fresh_sandbox.rpc, [parse_bytes32(tx_hash) for tx_hash in hashes]
    )
    assert [receipt.is_success for receipt in receipts] == [True] * 3
    assert await fresh_sandbox.reader.collateral_units(receiver) == before + 21


async def test_a_wallet_with_too_many_transactions_refuses_more(
    wallets: SandboxWallets, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_wallets, "WAITING_MAX", 0)
    with pytest.raises(WalletBusy):
        await wallets.send(SendRequest(sandbox.trader().address, sandbox.deployment.collateral))


@pytest.mark.parametrize(
    ("data", "value"),
    [("0xzz", "0"), ("0x" + "00" * 50_000, "0"), ("0x", "-1"), ("0x", "1e3"), ("0x", "9" * 22)],
)
async def test_a_malformed_transaction_is_refused(
    wallets: SandboxWallets, sandbox: Sandbox, data: str, value: str
) -> None:
    address = sandbox.trader().address
    with pytest.raises(MalformedBody):
        await wallets.send(SendRequest(address, sandbox.deployment.collateral, data, value))


async def test_a_page_may_read_the_chain_and_not_change_it(wallets: SandboxWallets) -> None:
    assert int(await wallets.ask(ChainRequest("eth_blockNumber", [])), 16) > 0
    for method in ("evm_mine", "anvil_setBalance", "eth_sendTransaction", "evm_increaseTime"):
        with pytest.raises(MalformedBody):
            await wallets.ask(ChainRequest(method, []))
