"""The sandbox's accounts by role, with the private keys of a well-known development mnemonic.

Other tools know these accounts too. On any other chain everyone can spend from them, so every use
of such a key calls `check_sandbox` first.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from foretell.domain.errors.chain import SandboxOnly
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address

SANDBOX_CHAIN_ID: Final = 80002
FAUCET_UNITS: Final = 100_000_000 * 10**6
CREATOR_UNITS: Final = 10_000 * 10**6
TRADER_UNITS: Final = 10_000 * 10**6


class AccountRole(enum.StrEnum):
    """The role of an account."""

    FAUCET = "faucet"
    """Mints collateral and gives it away."""
    ADMIN = "admin"
    """Deploys, and grants roles."""
    CREATOR = "creator"
    PROPOSER = "proposer"
    """Answers the creator's questions."""
    OPERATOR = "operator"
    """Settles matched orders."""
    REGISTRAR = "registrar"
    """Registers tokens for trading."""
    RELAYER = "relayer"
    """Sends the transactions that owners of Safes signed."""
    STORAGE = "storage"
    """Signs metadata for storage."""
    TREASURY = "treasury"
    """Receives the operator's fees."""
    COMMUNITY = "community"
    """Receives the community's part of creation fees."""
    TRADER = "trader"


@dataclass(frozen=True, slots=True)
class SandboxAccount:
    """One account of the sandbox."""

    role: AccountRole
    private_key: bytes

    @property
    def address(self) -> Address:
        """The address that the key controls."""
        return _address_of(self.private_key)


@cache
def _address_of(sandbox_key: bytes) -> Address:
    return address_of_key(sandbox_key)


_KEYS: Final = (
    (AccountRole.FAUCET, "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"),
    (AccountRole.ADMIN, "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"),
    (AccountRole.CREATOR, "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"),
    (AccountRole.PROPOSER, "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6"),
    (AccountRole.OPERATOR, "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a"),
    (AccountRole.REGISTRAR, "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba"),
    (AccountRole.RELAYER, "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e"),
    (AccountRole.STORAGE, "4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356"),
    (AccountRole.TREASURY, "ea6c44ac03bff858b476bba40716402b03e41b8e97e276d1baec7c37d42484a0"),
    (AccountRole.COMMUNITY, "689af8efa8c651a91ad287602527f3af2fe9f6501a7ac4b061667b5a93e037fd"),
    (AccountRole.TRADER, "dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97"),
    (AccountRole.TRADER, "2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6"),
    (AccountRole.TRADER, "f214f2b2cd398c806f84e317254e0f0b801d0643303237d97a22a48e01628897"),
    (AccountRole.TRADER, "701b615bbdfb9de65240bc28bd21bbc0d996645a3dd57e7b12bc2bdf6f192c82"),
    (AccountRole.TRADER, "a267530f49f8280200edf313ee7af6b827f2a8bce2897751d06a843f644967b1"),
    (AccountRole.TRADER, "47c99abed3324a2707c28affff1267e45918ec8c3f20b8aa892e8b065d2942dd"),
    (AccountRole.TRADER, "c526ee95bf44d8fc405a158bb884d9d1238d99f0612e9f33d006bb0789009aaa"),
    (AccountRole.TRADER, "8166f546bab6da521a8369cab06c5d2b9e46670292d85c875ee9ec20e84ffb61"),
)

SANDBOX_ACCOUNTS: Final = tuple(
    SandboxAccount(role, bytes.fromhex(digits)) for role, digits in _KEYS
)

UNITS_BY_ROLE: Final[Mapping[AccountRole, int]] = MappingProxyType(
    {
        AccountRole.FAUCET: FAUCET_UNITS,
        AccountRole.CREATOR: CREATOR_UNITS,
        AccountRole.TRADER: TRADER_UNITS,
    }
)
"""The collateral that an account starts with."""


def check_sandbox(chain_id: int) -> None:
    """Refuse the sandbox's keys on any chain but its own."""
    if chain_id != SANDBOX_CHAIN_ID:
        raise SandboxOnly("a sandbox key", f"chain {chain_id}")


def sandbox_accounts(role: AccountRole, chain_id: int) -> tuple[SandboxAccount, ...]:
    """Return the accounts of a role, or refuse on any chain but the sandbox's."""
    check_sandbox(chain_id)
    return tuple(account for account in SANDBOX_ACCOUNTS if account.role is role)


def sandbox_account(role: AccountRole, chain_id: int) -> SandboxAccount:
    """Return the first account of a role, or refuse on any chain but the sandbox's."""
    return sandbox_accounts(role, chain_id)[0]
