"""`foretell whitelist`: the accounts that may resolve a creator's markets."""

from typing import Annotated

import typer

from foretell.chain.artifacts import own_artifact
from foretell.cli.client.options import ClientOptions, client_command
from foretell.cli.client.output import print_fields
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.values.hexadecimal import checksum_address, parse_address
from foretell.sdk.client import Foretell

whitelist = typer.Typer(
    no_args_is_help=True, help="Choose the accounts that may resolve a creator's markets."
)

Proposers = Annotated[list[str], typer.Argument(help="Addresses of proposers.")]


@client_command(whitelist, "create")
async def create(options: ClientOptions, proposers: Proposers) -> None:
    """Deploy the creator's whitelist and register it; one that is registered is replaced."""
    async with options.foretell(AccountRole.CREATOR) as foretell:
        accounts = [parse_address(each) for each in proposers]
        code = own_artifact("ProposerWhitelist").init_code(foretell.chain.address, accounts)
        await foretell.whitelist().create(code)
        await _show(options, foretell)


@client_command(whitelist, "add")
async def add(options: ClientOptions, proposers: Proposers) -> None:
    """Add proposers to the creator's whitelist."""
    async with options.foretell(AccountRole.CREATOR) as foretell:
        await foretell.whitelist().add([parse_address(each) for each in proposers])
        await _show(options, foretell)


@client_command(whitelist, "remove")
async def remove(options: ClientOptions, proposers: Proposers) -> None:
    """Remove proposers from the creator's whitelist."""
    async with options.foretell(AccountRole.CREATOR) as foretell:
        await foretell.whitelist().remove([parse_address(each) for each in proposers])
        await _show(options, foretell)


@client_command(whitelist, "show")
async def show(options: ClientOptions) -> None:
    """Show the creator's whitelist."""
    async with options.foretell(AccountRole.CREATOR) as foretell:
        await _show(options, foretell)


async def _show(options: ClientOptions, foretell: Foretell) -> None:
    registered = await foretell.whitelist().address()
    proposers = await foretell.whitelist().proposers()
    fields = {
        "creator": checksum_address(foretell.chain.address),
        "whitelist": "" if registered is None else checksum_address(registered),
        "proposers": [checksum_address(each) for each in proposers],
    }
    print_fields(fields, is_json=options.is_json)
