"""Clients that others wrote, and the lines with which each uses a running sandbox.

The addresses that a client trades for are those that it derives from its key itself.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from foretell.domain.contracts.calldata import ALLOWANCE_UNITS_MAX, Approve
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.values.hexadecimal import checksum_address, parse_address
from foretell.sandbox import typescript_clients
from foretell.sandbox.ready import Ready


class ClientSetup(NamedTuple):
    """The values of a sandbox that the lines of a client contain."""

    ready: Ready
    ready_file: str
    deposit_wallets: tuple[str, ...]
    """The trader's deposit wallets, one of each factory."""
    proxy_wallet: str
    """The trader's proxy wallet; empty where the exchange takes none."""
    approval: InnerCall
    """The call by which a wallet lets the exchange take collateral."""

    @property
    def key_line(self) -> str:
        """The line that reads the key of the first trader."""
        return (
            f"key = next(each['privateKey'] for each in json.load(open({self.ready_file!r}))"
            "['accounts'] if each['role'] == 'trader')"
        )


def _clob(setup: ClientSetup, package: str, arguments: str = "", login: str = "") -> str:
    login = login or "create_or_derive_api_creds"
    return (
        f"import json\nfrom {package}.client import ClobClient\n\n{setup.key_line}\n"
        f"client = ClobClient({setup.ready.clob!r}, chain_id={setup.ready.chain_id}, key=key"
        f"{arguments})\nclient.set_api_creds(client.{login}())"
    )


def _funder(setup: ClientSetup, factory: int) -> str:
    return f", signature_type=3, funder={setup.deposit_wallets[factory]!r}"


def _proxy_funder(setup: ClientSetup) -> str:
    return f", signature_type=1, funder={setup.proxy_wallet!r}"


def _relayer(setup: ClientSetup, arguments: str = "") -> str:
    made = _new_relayer(setup, setup.ready.chain_id, arguments)
    return f"{made}\nrelayer.deploy_deposit_wallet()"


def _proxy_relayer(setup: ClientSetup) -> str:
    arguments = f", RelayerTxType.PROXY, {setup.ready.rpc!r}"
    models = "from py_builder_relayer_client.models import RelayerTxType, Transaction\n"
    call, made = setup.approval, _new_relayer(setup, PROXY_CHAIN_ID, arguments, models)
    return (
        f"{made}\n# The first call makes the wallet. This one lets the exchange take its collateral.\n"
        f"approval = Transaction({checksum_address(call.to)!r}, '0x{call.calldata.hex()}', '0')\n"
        "relayer.execute([approval], 'approval')"
    )


def _new_relayer(setup: ClientSetup, chain_id: int, arguments: str, models: str = "") -> str:
    return (
        "import json\n"
        f"from py_builder_relayer_client.client import RelayClient\n{models}"
        "from py_builder_signing_sdk.config import BuilderConfig\n"
        "from py_builder_signing_sdk.sdk_types import BuilderApiKeyCreds\n\n"
        f"{setup.key_line}\n"
        "# The credentials are those that a client of the trading API above has created.\n"
        "creds = BuilderApiKeyCreds(key=api_key, secret=api_secret, passphrase=api_passphrase)\n"
        f"relayer = RelayClient({setup.ready.relayer!r}, {chain_id}, key,"
        f" BuilderConfig(local_builder_creds=creds){arguments})"
    )


class KnownClient(NamedTuple):
    """A client: its package and version, what it trades for, and its lines.

    One in TypeScript needs packages of npm besides.
    """

    package: str
    version: str
    wallet: str
    lines: Callable[[ClientSetup], str]
    npm_packages: tuple[str, ...] = ()

    @property
    def is_in_typescript(self) -> bool:
        """Whether its lines are TypeScript, else they are Python."""
        return bool(self.npm_packages)

    def described(self, setup: ClientSetup) -> str:
        """Return its lines below comments that say what they are and how to install the client."""
        if self.is_in_typescript:
            packages = " ".join((f"{self.package}@{self.version}", *self.npm_packages))
            mark, command = "//", f"npm install {packages}, and run them as a module (.mjs)"
        else:
            packages = f"{self.package}=={self.version}"
            mark, command = "#", f"pip install {packages}, in an environment of its own"
        title = f"{mark} {self.package} {self.version}, trading for {self.wallet}"
        return f"{title}\n{mark} {command}\n{self.lines(setup)}"


PROXY_CHAIN_ID: Final = 137
"""The chain on which clients of relayers know proxy wallets; the calls that they sign name no chain."""
ETHERS_WALLET: Final = "@ethersproject/wallet@5.8.0"
RELAYER_PACKAGES: Final = ("@polymarket/builder-signing-sdk@0.0.8", "viem")

KNOWN_CLIENTS: Final = (
    KnownClient("py-clob-client", "0.34.6", "the address", lambda s: _clob(s, "py_clob_client")),
    KnownClient(
        "py-clob-client",
        "0.34.6",
        "its proxy wallet",
        lambda s: _clob(s, "py_clob_client", _proxy_funder(s)),
    ),
    KnownClient(
        "py-clob-client-v2",
        "1.2.1",
        "the address",
        lambda s: _clob(s, "py_clob_client_v2", login="create_or_derive_api_key"),
    ),
    KnownClient(
        "py-clob-client-v2",
        "1.2.1",
        "its deposit wallet",
        lambda s: _clob(s, "py_clob_client_v2", _funder(s, -1), "create_or_derive_api_key"),
    ),
    KnownClient(
        "kuest-py-clob-client", "0.34.6", "the address", lambda s: _clob(s, "py_clob_client")
    ),
    KnownClient(
        "kuest-py-clob-client",
        "2.0.15",
        "its deposit wallet",
        lambda s: _clob(s, "py_clob_client", _funder(s, 0)),
    ),
    KnownClient(
        "py-builder-relayer-client",
        "0.0.3",
        "its deposit wallet",
        lambda s: _relayer(s, f", rpc_url={s.ready.rpc!r}"),
    ),
    KnownClient("py-builder-relayer-client", "0.0.3", "its proxy wallet", _proxy_relayer),
    KnownClient("kuest-py-builder-relayer-client", "2.0.9", "its deposit wallet", _relayer),
    KnownClient(
        "@polymarket/clob-client",
        "5.8.1",
        "the address",
        lambda s: typescript_clients.clob_lines(s.ready, s.ready_file),
        (ETHERS_WALLET,),
    ),
    KnownClient(
        "@polymarket/clob-client",
        "5.8.1",
        "its proxy wallet",
        lambda s: typescript_clients.clob_lines(s.ready, s.ready_file, s.proxy_wallet),
        (ETHERS_WALLET,),
    ),
    KnownClient(
        "@polymarket/clob-client-v2",
        "1.1.0",
        "the address",
        lambda s: typescript_clients.clob_v2_lines(s.ready, s.ready_file),
        (ETHERS_WALLET,),
    ),
    KnownClient(
        "@polymarket/clob-client-v2",
        "1.1.0",
        "its deposit wallet",
        lambda s: typescript_clients.clob_v2_lines(s.ready, s.ready_file, s.deposit_wallets[-1]),
        (ETHERS_WALLET,),
    ),
    KnownClient(
        "@polymarket/builder-relayer-client",
        "0.0.10",
        "its deposit wallet",
        lambda s: typescript_clients.relayer_lines(s.ready, s.ready_file),
        RELAYER_PACKAGES,
    ),
    KnownClient(
        "@polymarket/builder-relayer-client",
        "0.0.10",
        "its proxy wallet",
        lambda s: typescript_clients.proxy_relayer_lines(
            s.ready, s.ready_file, PROXY_CHAIN_ID, s.approval
        ),
        RELAYER_PACKAGES,
    ),
)


def client_setup(ready: Ready, ready_file: str, deployment: Deployment) -> ClientSetup:
    """Return the values of a running sandbox that clients need, for its first trader."""
    trader = parse_address(ready.account(AccountRole.TRADER).address)
    wallets = tuple(map(checksum_address, deployment.deposit_wallets_of(trader)))
    has_proxies = deployment.proxy_wallet_factory is not None
    proxy = checksum_address(deployment.proxy_wallet_of(trader)) if has_proxies else ""
    approve = Approve(deployment.exchange, ALLOWANCE_UNITS_MAX).encode()
    approval = InnerCall(deployment.collateral, approve)
    return ClientSetup(ready, ready_file, wallets, proxy, approval)
