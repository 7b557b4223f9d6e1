"""Options that every client command has: the installation, the signer, and the form of the output."""

import contextlib
import functools
import inspect
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

import msgspec
import typer
import uvloop

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.command import ApiRefused, CommandRefused, NoSigner
from foretell.domain.values.hexadecimal import parse_address
from foretell.sandbox.ready import Ready, read_ready
from foretell.sdk.client import Foretell, PublicApis, Urls
from foretell.sdk.json_rpc import JsonRpc
from foretell.sdk.refusals import refusal_of
from foretell.sdk.signing.signers import KeySigner, RemoteSigner, Signer
from foretell.settings import Settings

PASSWORD_VARIABLE: Final = "FORETELL_KEY_PASSWORD"  # noqa: S105 - a name
"""The password of a keystore; without it, the command asks for it."""

Url = Annotated[
    str | None,
    typer.Option(
        envvar="FORETELL_URL",
        help="Address of the installation.",
        show_default="the sandbox of the data folder",
    ),
]
Node = Annotated[
    str | None,
    typer.Option(
        "--rpc",
        envvar="FORETELL_RPC_URL",
        help="Address of a node of the chain.",
        show_default="the sandbox's",
    ),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        envvar="FORETELL_DATA",
        help="The sandbox's data folder.",
        show_default=str(Settings.model_fields["data"].default),
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        envvar="FORETELL_KEY_FILE",
        help="File with the private key: 64 hex digits, or a wallet's keystore.",
    ),
]
RemoteSignerUrl = Annotated[
    str | None,
    typer.Option("--signer", envvar="FORETELL_SIGNER_URL", help="Address of a remote signer."),
]
SignerAddress = Annotated[
    str | None,
    typer.Option("--address", envvar="FORETELL_SIGNER_ADDRESS", help="Account at that signer."),
]
SandboxRole = Annotated[
    str | None,
    typer.Option(
        "--as",
        help="Account of the sandbox: a role, such as trader, or trader:2 for the second one.",
        show_default="the one that the command needs",
    ),
]
IsSafe = Annotated[bool, typer.Option("--safe", help="Use the signer's Safe as the wallet.")]
IsDepositWallet = Annotated[
    bool, typer.Option("--deposit-wallet", help="Use the signer's deposit wallet as the wallet.")
]
IsProxyWallet = Annotated[
    bool, typer.Option("--proxy-wallet", help="Use the signer's proxy wallet as the wallet.")
]
IsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class ClientOptions(NamedTuple):
    """The common options of a command."""

    url: Url = None
    rpc: Node = None
    data: DataFolder = None
    key_file: KeyFile = None
    remote: RemoteSignerUrl = None
    account: SignerAddress = None
    role: SandboxRole = None
    is_safe: IsSafe = False
    is_deposit_wallet: IsDepositWallet = False
    is_proxy_wallet: IsProxyWallet = False
    is_json: IsJson = False

    @property
    def folder(self) -> Path:
        """The sandbox's data folder."""
        return self.data or Path(Settings.model_fields["data"].default)

    def ready(self) -> Ready:
        """Return what the sandbox of the data folder says of itself."""
        return read_ready(self.folder)

    def urls(self) -> Urls:
        """Return the addresses of the installation."""
        if self.url is not None:
            return Urls.at(self.url, self.rpc or "")
        found = Urls.from_ready(self.folder)
        return found if self.rpc is None else msgspec.structs.replace(found, rpc=self.rpc)

    def key_signer(self, role: AccountRole) -> KeySigner:
        """Return the key of the file, or that of the sandbox's account."""
        if self.key_file is not None:
            content = self.key_file.read_text()
            if content.lstrip().startswith("{"):
                password = os.environ.get(PASSWORD_VARIABLE)
                if password is None:
                    password = typer.prompt("password of the keystore", hide_input=True, err=True)
                return KeySigner.from_keystore(self.key_file, password)
            return KeySigner.from_hex(content)
        if self.url is not None:
            raise NoSigner
        name, _, number = (self.role or role.value).partition(":")
        accounts = [each for each in self.ready().accounts if each.role == name]
        index = int(number or "1") - 1 if (number or "1").isdecimal() else -1
        if not 0 <= index < len(accounts):
            raise typer.BadParameter(f"the sandbox has {len(accounts)} accounts {name}")
        return KeySigner(accounts[index].key)

    @contextlib.asynccontextmanager
    async def signer(self, role: AccountRole) -> AsyncIterator[Signer]:
        """Give the signer; the connection to a remote one ends with the block."""
        if self.remote is None:
            yield self.key_signer(role)
            return
        if self.account is None:
            raise typer.BadParameter("--signer needs --address")
        async with JsonRpc(self.remote) as rpc:
            yield RemoteSigner(rpc, parse_address(self.account))

    @contextlib.asynccontextmanager
    async def foretell(self, role: AccountRole = AccountRole.TRADER) -> AsyncIterator[Foretell]:
        """Give the client of the signer."""
        wallet = self.wallet()
        async with (
            self.signer(role) as signer,
            Foretell.connect(self.urls(), signer, wallet=wallet) as foretell,
        ):
            yield foretell

    def wallet(self) -> str:
        """Return the kind of the wallet that the options name, or refuse two of them."""
        named = {
            "safe": self.is_safe,
            "deposit wallet": self.is_deposit_wallet,
            "proxy wallet": self.is_proxy_wallet,
        }
        kinds = [kind for kind, is_named in named.items() if is_named]
        if len(kinds) > 1:
            options = " and ".join("--" + kind.replace(" ", "-") for kind in kinds)
            raise typer.BadParameter(f"{options} are {len(kinds)} wallets: name one")
        return kinds[0] if kinds else "eoa"

    @contextlib.asynccontextmanager
    async def public(self) -> AsyncIterator[PublicApis]:
        """Give the APIs that need no key."""
        async with PublicApis.connect(self.urls()) as apis:
            yield apis


Command = Callable[..., Coroutine[Any, Any, None]]


def client_command(app: typer.Typer, name: str) -> Callable[[Command], Command]:
    """Add an asynchronous function as a command; its first parameter takes the common options."""

    def add(function: Command) -> Command:
        given = list(inspect.signature(function).parameters.values())[1:]
        common = [
            inspect.Parameter(
                field,
                inspect.Parameter.KEYWORD_ONLY,
                default=ClientOptions._field_defaults[field],
            )
            for field in ClientOptions._fields
        ]

        @functools.wraps(function)
        def run(**values: Any) -> None:
            options = ClientOptions(**{each: values.pop(each) for each in ClientOptions._fields})
            try:
                uvloop.run(function(options, **values))
            except ApiRefused as refused:
                refusal = refusal_of(refused)
                raise CommandRefused(refusal.code, refusal.cause, refusal.cure) from refused

        hints = get_type_hints(function, include_extras=True)
        hints |= get_type_hints(ClientOptions, include_extras=True)
        parameters = [each.replace(annotation=hints[each.name]) for each in (*given, *common)]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        app.command(name)(run)
        return function

    return add
