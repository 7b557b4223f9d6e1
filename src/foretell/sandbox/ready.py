"""`ready.json`: the addresses, contracts and public keys of a sandbox that answers."""

from pathlib import Path
from typing import Final

import msgspec

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.sandbox_accounts import SANDBOX_ACCOUNTS, AccountRole
from foretell.domain.errors.command import NotRunning
from foretell.domain.values.credentials import L1_DOMAIN_NAME
from foretell.domain.values.hexadecimal import Address, checksum_address, parse_address
from foretell.runtime.files import write_atomically

FILE: Final = "ready.json"


class ReadyAccount(msgspec.Struct, frozen=True, rename="camel"):
    """An account of the sandbox, its key public."""

    role: str
    address: str
    private_key: str

    @property
    def key(self) -> bytes:
        """The private key."""
        return bytes.fromhex(self.private_key[2:])


class SeededMarket(msgspec.Struct, frozen=True, rename="camel"):
    """The market that the sandbox starts with."""

    condition_id: str
    token_yes: str
    token_no: str
    slug: str


NOT_SEEDED: Final = SeededMarket("", "", "", "")


class Ready(msgspec.Struct, frozen=True, rename="camel"):
    """The contents of the file."""

    clob: str
    worker: str
    relayer: str
    data: str
    discovery: str
    ws: str
    rpc: str
    chain_id: int
    contracts: dict[str, str]
    accounts: list[ReadyAccount]
    market: SeededMarket
    web: str = ""
    """The web app with the token of the sandbox's wallets; files of earlier versions have none."""
    l1_domain: str = L1_DOMAIN_NAME
    """The domain in which wallets sign for an API key; files of earlier versions have none."""

    def account(self, role: AccountRole) -> ReadyAccount:
        """Return the first account of a role."""
        return next(account for account in self.accounts if account.role == role)

    def contract(self, name: str) -> Address:
        """Return the address of a contract."""
        return parse_address(self.contracts[name])


def describe(
    base_url: str,
    rpc_url: str,
    deployment: Deployment,
    market: SeededMarket,
    l1_domain: str = L1_DOMAIN_NAME,
    web_token: str = "",
) -> Ready:
    """Return the contents of the file for a running sandbox."""
    return Ready(
        clob=f"{base_url}/clob",
        worker=f"{base_url}/create-market",
        relayer=f"{base_url}/relayer",
        data=f"{base_url}/data",
        discovery=f"{base_url}/discovery",
        ws=f"{base_url}/clob/ws".replace("http", "ws", 1),
        rpc=rpc_url,
        chain_id=deployment.chain_id,
        contracts={
            name.value: checksum_address(contract.address)
            for name, contract in deployment.contracts.items()
        },
        accounts=[
            ReadyAccount(
                account.role.value,
                checksum_address(account.address),
                "0x" + account.private_key.hex(),
            )
            for account in SANDBOX_ACCOUNTS
        ],
        market=market,
        web=f"{base_url}/#sandbox={web_token}",
        l1_domain=l1_domain,
    )


def write_ready(folder: Path, ready: Ready) -> None:
    """Write the file atomically; only its owner can read it."""
    content = msgspec.json.format(msgspec.json.encode(ready), indent=2)
    write_atomically(folder / FILE, content, draft=folder / "ready.draft")


def remove_ready(folder: Path) -> None:
    """Remove the file when the sandbox stops."""
    (folder / FILE).unlink(missing_ok=True)


def read_ready(folder: Path) -> Ready:
    """Return the contents of the file, or refuse when nothing runs on the folder."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Ready)
    except (FileNotFoundError, msgspec.MsgspecError) as error:
        raise NotRunning(str(folder)) from error
