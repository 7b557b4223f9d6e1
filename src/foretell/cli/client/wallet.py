"""`foretell wallet`: deploy, fund and show a wallet; split, merge, convert, redeem and claim its positions."""

from typing import Annotated, Final

import typer

from foretell.cli.client.options import ClientOptions, client_command
from foretell.cli.client.output import print_fields, print_rows, report
from foretell.domain.contracts.calldata import Transfer
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.amounts import decimal_text
from foretell.domain.values.hexadecimal import checksum_address, parse_address, parse_bytes32
from foretell.sdk.amounts import parse_base_units
from foretell.sdk.chain import ChainAccount
from foretell.sdk.json_rpc import JsonRpc
from foretell.sdk.portfolio import Row
from foretell.sdk.signing.signers import KeySigner

GAS_MONEY_WEI: Final = 10**18
TRANSFER_GAS: Final = 21_000

wallet = typer.Typer(
    no_args_is_help=True,
    help="Deploy, fund and show a wallet; split, merge, convert, redeem and claim.",
)

Name = Annotated[str, typer.Argument(help="Slug or condition id of a market.")]
Size = Annotated[str, typer.Argument(help="Number of complete sets, or of tokens.")]


@client_command(wallet, "deploy")
async def deploy(options: ClientOptions) -> None:
    """Make the approvals that trading needs; a wallet that is a contract is deployed first."""
    async with options.foretell() as foretell:
        address = await foretell.deploy_wallet()
    print_fields({"wallet": checksum_address(address)}, is_json=options.is_json)


@client_command(wallet, "fund")
async def fund(
    options: ClientOptions,
    amount: Annotated[str, typer.Argument(help="Collateral.")],
    to: Annotated[
        str | None, typer.Option(help="Address that receives it.", show_default="the wallet")
    ] = None,
) -> None:
    """Give a wallet of the sandbox collateral from the faucet, and coins for gas."""
    units, ready = parse_base_units(amount, "amount"), options.ready()
    if to is None:
        async with options.foretell() as foretell:
            receiver = foretell.trader.maker
    else:
        receiver = parse_address(to)
    faucet = KeySigner(ready.account(AccountRole.FAUCET).key)
    async with JsonRpc(ready.rpc) as rpc:
        account = ChainAccount(rpc, faucet, ready.chain_id)
        await account.call_all(
            [
                ContractCall(ready.contract("collateral"), Transfer(receiver, units).encode()),
                ContractCall(receiver, b"", value_wei=GAS_MONEY_WEI),
            ]
        )
    given = {"wallet": checksum_address(receiver), "collateral": decimal_text(units)}
    print_fields(given, is_json=options.is_json)


@client_command(wallet, "show")
async def show(options: ClientOptions) -> None:
    """Show the wallet's collateral, positions, and tokens that are owed to it."""
    async with options.foretell() as foretell:
        funds = await foretell.trader.collateral()
        positions = await foretell.portfolio.positions()
        owed = [_owed_row(row) for row in await foretell.portfolio.owed()]
        maker = checksum_address(foretell.trader.maker)
        is_deployed = foretell.trader.wallet.is_deployed
    rows = [
        {
            "market": row["slug"],
            "outcome": row["outcome"],
            "size": row["size"],
            "average price": row["avgPrice"],
            "price": row["curPrice"],
            "profit": row["cashPnl"],
            "redeemable": row["redeemable"],
        }
        for row in positions
    ]
    fields = {
        "wallet": maker,
        "deployed": is_deployed,
        "collateral": decimal_text(int(funds.balance)),
        "reserved": decimal_text(int(funds.reserved)),
    }
    if options.is_json:
        print_fields({**fields, "positions": rows, "owed": owed}, is_json=True)
        return
    print_fields(fields, is_json=False)
    typer.echo("")
    print_rows(rows, is_json=False)
    if owed:
        typer.echo("\nRefused by the wallet, and kept for it until `foretell wallet claim`:")
        print_rows(owed, is_json=False)


@client_command(wallet, "split")
async def split(options: ClientOptions, name: Name, size: Size) -> None:
    """Split collateral into complete sets of a market."""
    async with options.foretell() as foretell:
        listed = await foretell.apis.discovery.market(name)
        tx_hash = await foretell.split(listed.condition, size)
    print_fields({"transaction": tx_hash}, is_json=options.is_json)


@client_command(wallet, "merge")
async def merge(options: ClientOptions, name: Name, size: Size) -> None:
    """Merge complete sets of a market into collateral."""
    async with options.foretell() as foretell:
        listed = await foretell.apis.discovery.market(name)
        tx_hash = await foretell.merge(listed.condition, size)
    print_fields({"transaction": tx_hash}, is_json=options.is_json)


@client_command(wallet, "convert")
async def convert(
    options: ClientOptions,
    size: Size,
    names: Annotated[list[str], typer.Argument(help="Markets of one event whose No is converted.")],
) -> None:
    """Convert No's of an event into Yes's of its other markets, and collateral."""
    async with options.foretell() as foretell:
        listed = [await foretell.apis.discovery.market(each) for each in names]
        events = {each.row.get("negRiskMarketID", "") for each in listed}
        if len(events) != 1 or "" in events:
            raise typer.BadParameter(
                "the markets must be of one event of which exactly one is true"
            )
        indexes = [int(each.row["questionID"][-2:], 16) for each in listed]
        event_id = parse_bytes32(next(iter(events)))
        tx_hash = await foretell.convert(event_id, indexes, size)
    print_fields({"transaction": tx_hash}, is_json=options.is_json)


@client_command(wallet, "redeem")
async def redeem(
    options: ClientOptions,
    name: Annotated[
        str | None, typer.Argument(help="Market.", show_default="every resolved one")
    ] = None,
) -> None:
    """Redeem the tokens of a resolved market, or of all."""
    async with options.foretell() as foretell:
        if name is not None:
            listed = await foretell.apis.discovery.market(name)
            tx_hash = await foretell.redeem(listed.condition)
            rows = [{"market": str(listed.condition_id), "transaction": tx_hash}]
        else:
            report("redeeming every resolved position")
            done = await foretell.redeem_all()
            rows = [{"market": str(condition.condition_id)} for condition in done]
    print_rows(rows, is_json=options.is_json)


@client_command(wallet, "claim")
async def claim(
    options: ClientOptions,
    to: Annotated[
        str | None, typer.Option(help="Address that receives them.", show_default="the wallet")
    ] = None,
) -> None:
    """Claim the tokens that exchanges keep because the wallet refused them."""
    receiver = None if to is None else parse_address(to)
    async with options.foretell() as foretell:
        claimed = await foretell.claim_tokens(receiver)
    print_rows([_owed_row(row) for row in claimed], is_json=options.is_json)


def _owed_row(row: Row) -> Row:
    return {
        "market": row["slug"],
        "outcome": row["outcome"],
        "size": row["size"],
        "token": row["asset"],
    }
