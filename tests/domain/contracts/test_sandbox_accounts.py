import pytest
from eth_account import Account

from foretell.domain.contracts.sandbox_accounts import (
    SANDBOX_ACCOUNTS,
    UNITS_BY_ROLE,
    AccountRole,
    check_sandbox,
    sandbox_account,
    sandbox_accounts,
)
from foretell.domain.errors.chain import SandboxOnly

MNEMONIC = "test test test test test test test test test test test junk"
ACCOUNTS_OF_A_DEV_CHAIN = 20


def test_every_account_is_one_of_the_best_known_mnemonics() -> None:
    Account.enable_unaudited_hdwallet_features()
    known = {
        Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/0'/0/{number}").address.lower()
        for number in range(ACCOUNTS_OF_A_DEV_CHAIN)
    }
    addresses = [account.address for account in SANDBOX_ACCOUNTS]
    assert len(set(addresses)) == len(addresses)
    assert set(addresses) <= known


@pytest.mark.parametrize("role", list(AccountRole))
def test_every_role_has_its_accounts(role: AccountRole) -> None:
    accounts = sandbox_accounts(role, 80002)
    assert {account.role for account in accounts} == {role}
    assert sandbox_account(role, 80002) == accounts[0]


def test_there_are_traders_enough_for_a_market_and_the_faucet_is_never_dry() -> None:
    assert len(sandbox_accounts(AccountRole.TRADER, 80002)) >= 4
    assert UNITS_BY_ROLE[AccountRole.FAUCET] >= 1_000_000 * 10**6
    assert sandbox_account(AccountRole.FAUCET, 80002).address == (
        "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
    )


@pytest.mark.parametrize("chain_id", [1, 137, 80001, 31337])
def test_a_sandbox_key_is_refused_on_other_chains(chain_id: int) -> None:
    with pytest.raises(SandboxOnly, match=str(chain_id)):
        check_sandbox(chain_id)
    with pytest.raises(SandboxOnly):
        sandbox_account(AccountRole.FAUCET, chain_id)
