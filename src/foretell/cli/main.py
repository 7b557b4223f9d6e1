"""The `foretell` command. Each subcommand imports its module when it is called."""

import errno
import os
import tomllib
from importlib.metadata import version
from typing import Annotated, Final

import typer
from pydantic import ValidationError
from rich.console import Console

from foretell.cli.bench import bench
from foretell.cli.client.market import market
from foretell.cli.client.options import client_command
from foretell.cli.client.order import book, order
from foretell.cli.client.resolution import arbitrate, dispute, resolve, withdraw
from foretell.cli.client.wallet import wallet
from foretell.cli.client.whitelist import whitelist
from foretell.cli.failure import fail
from foretell.cli.installed import index, journal, storage, verification
from foretell.cli.options import ChainPort, Data, Port, settings_of
from foretell.domain.contracts.networks import NetworkName
from foretell.domain.errors.families import ForetellError
from foretell.domain.portfolio.builder_fees import MAKER_FLAT_BPS_MAX, TAKER_SHARE_BPS_MAX
from foretell.domain.portfolio.fee_shares import REFERRER_SHARE_BPS_MAX

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
PRIVATE_UMASK: Final = 0o077
"""Files and folders that a command creates are for its own user alone."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _print_version(is_asked: bool) -> None:  # noqa: FBT001 - as typer calls it
    if is_asked:
        typer.echo(f"foretell {version('foretell')}")
        raise typer.Exit


@app.callback()
def root(
    *,
    is_version_asked: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """A complete prediction-market exchange: contracts, trading, settlement and APIs."""
    del is_version_asked  # its callback has answered


@app.command()
def up(data: Data = None, port: Port = None, chain_port: ChainPort = None) -> None:
    """Run everything on this machine: a chain, the contracts, every API, and a first market.

    It needs no configuration and no network. Ctrl-C stops it; the next start continues from there.
    """
    from foretell.cli.up import run_up

    run_up(settings_of(data=data, port=port, chain_port=chain_port), Console())


@app.command()
def serve(  # noqa: PLR0913 - the options of a command
    roles: Annotated[
        list[str] | None,
        typer.Argument(help="Roles of this process.", show_default="all, in one process"),
    ] = None,
    data: Data = None,
    port: Port = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Number of server processes, for trading only.",
            show_default="no separate processes",
        ),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Number of engines that divide the markets.",
            show_default="1 with --workers",
        ),
    ] = None,
    shard: Annotated[int, typer.Option(min=0, help="Number of this engine.")] = 0,
    *,
    member: Annotated[bool, typer.Option("--member", hidden=True)] = False,
    listener: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run chosen roles with your own node and database.

    Roles: trading, creation, relayer, data, discovery (each an API); settlement, indexer (no API);
    engine, treasury (parts of trading in separate processes).
    One API is served at `/`, several are served under a prefix each. Set FORETELL_RPC_URL,
    FORETELL_CHAIN_ID and the keys, and run `foretell deploy` first.

    `serve trading --workers N --shards M` runs M engines and N processes that answer clients, and
    restarts those that fail. `serve engine --shard K` runs one engine; it waits while another
    process leads the shard.
    """
    from foretell.app.installation import ParentProcess
    from foretell.cli.serve import ProcessRole, run_fleet, run_serve

    if workers is not None:
        settings = settings_of(data=data, port=port, shards=shards or 1)
        run_fleet(settings, roles or [], workers, Console())
    else:
        settings = settings_of(data=data, port=port, shards=shards)
        parent = ParentProcess(listener) if member else None
        run_serve(settings, roles or [], ProcessRole(shard, parent), Console())


@app.command()
def deploy(
    data: Data = None,
    network: Annotated[
        NetworkName | None,
        typer.Option(help="Name of a public chain.", show_default="the node's chain"),
    ] = None,
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Only compare the chain with the file.")
    ] = False,
) -> None:
    """Deploy the contracts, or complete an earlier deployment, and write deployment.json."""
    from foretell.cli.deploy import run_deploy

    run_deploy(settings_of(data=data), Console(), network, is_check=check)


@app.command()
def demo(
    data: Data = None,
    *,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also run an event of three outcomes and a disputed answer."),
    ] = False,
    worker_url: Annotated[
        str | None,
        typer.Option(
            envvar="CREATE_MARKET_URL",
            help="URL of another market-creation worker.",
            show_default="the sandbox's",
        ),
    ] = None,
) -> None:
    """Run a market from creation to redemption on a running `foretell up`.

    The demo uses only the public HTTP and WebSocket APIs and JSON-RPC, as any client does. --all
    moves the chain's clock two hours ahead: use a data folder that you can delete.
    """
    from foretell.cli.demo import run_demo

    run_demo(settings_of(data=data), Console(), is_all=everything, worker_url=worker_url)


@app.command()
def clients(data: Data = None) -> None:
    """Print the lines with which clients of Polymarket and Kuest use a running `foretell up`."""
    from foretell.cli.clients import client_lines

    typer.echo(client_lines(settings_of(data=data)))


@app.command()
def doctor(data: Data = None) -> None:
    """Check that everything needed is installed, and that a running sandbox answers."""
    from foretell.cli.doctor import run_doctor

    run_doctor(settings_of(data=data), Console())


@app.command()
def solvency(data: Data = None) -> None:
    """Compare the collateral that the contracts hold with all claims on it.

    Reads the tables as of the last indexed block, and the chain at that block. The exchange may run
    meanwhile. If collateral is missing, prints where, and exits with 1.
    """
    from foretell.cli.solvency import run_solvency

    run_solvency(settings_of(data=data), Console())


@app.command("builder-fees")
def builder_fees(
    code: Annotated[str, typer.Argument(help="The builder's code, 32 bytes in hex.")],
    taker_share_bps: Annotated[
        int, typer.Option(min=0, max=TAKER_SHARE_BPS_MAX, help="Its share of takers' fees.")
    ] = 0,
    maker_flat_bps: Annotated[
        int, typer.Option(min=0, max=MAKER_FLAT_BPS_MAX, help="Its fee of makers' collateral.")
    ] = 0,
    data: Data = None,
) -> None:
    """Set the rates by which a builder's fees are accounted from now on, in hundredths of a percent.

    Trades that matched before keep the rates of their time. Nothing is charged or paid by it.
    """
    from foretell.cli.builder_fees import run_builder_fees

    run_builder_fees(settings_of(data=data), Console(), code, taker_share_bps, maker_flat_bps)


@app.command("fee-shares")
def fee_shares(
    referrer_share_bps: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=REFERRER_SHARE_BPS_MAX,
            help="Set the share of referrers in what builders leave of a fee, in hundredths of a percent.",
        ),
    ] = None,
    data: Data = None,
) -> None:
    """Print the fees that the exchange charged on the chain, and the parts of builders and referrers.

    A share that is set is in force from now on; earlier fees keep the share of their time. Nothing is paid by it.
    """
    from foretell.cli.fee_shares import run_fee_shares

    run_fee_shares(settings_of(data=data), Console(), referrer_share_bps)


app.add_typer(bench, name="bench")
app.add_typer(market, name="market")
app.add_typer(order, name="order")
client_command(app, "book")(book)
client_command(market, "resolve")(resolve)
client_command(market, "dispute")(dispute)
client_command(market, "arbitrate")(arbitrate)
client_command(market, "withdraw")(withdraw)
app.add_typer(wallet, name="wallet")
app.add_typer(whitelist, name="whitelist")

app.add_typer(storage, name="storage")
app.add_typer(index, name="index")
app.add_typer(verification, name="verify")
app.add_typer(journal, name="journal")

WalletAddress = Annotated[str, typer.Argument(help="The address that holds the funds.")]


@wallet.command("barred")
def list_barred(data: Data = None) -> None:
    """Print a line for each barred wallet: when it is probed, its offences, and the cause."""
    from foretell.cli.wallet import run_list

    run_list(settings_of(data=data), Console())


@wallet.command("gas")
def list_gas(data: Data = None) -> None:
    """Print the gas of failed settlements by day and wallet, and what they may cost in a day."""
    from foretell.cli.wallet import run_gas

    run_gas(settings_of(data=data), Console())


@wallet.command()
def bar(
    address: WalletAddress,
    data: Data = None,
    cause: Annotated[
        str, typer.Option(help="The cause, which the wallet's owner sees.")
    ] = "by the operator",
) -> None:
    """Bar a wallet from matching: its orders are closed, and new ones refused with the cause."""
    from foretell.cli.wallet import run_bar

    run_bar(settings_of(data=data), address, cause, Console())


@wallet.command()
def unbar(address: WalletAddress, data: Data = None) -> None:
    """End the bar of a wallet, and forget its offences."""
    from foretell.cli.wallet import run_unbar

    run_unbar(settings_of(data=data), address, Console())


def run() -> None:
    """Run the command line; a refusal is printed in one line, without a traceback.

    What it and its children create is private: files have mode 0600 and folders 0700.
    """
    os.umask(PRIVATE_UMASK)
    try:
        app()
    except ForetellError as error:
        fail(error.message)
    except ExceptionGroup as group:
        causes = [cause for error in _leaf_errors(group) if (cause := _cause_of(error))]
        if not causes:
            raise
        fail(causes[0])
    except ValidationError as error:
        problems = "; ".join(
            f"FORETELL_{'_'.join(map(str, problem['loc'])).upper()}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False)
        )
        fail(problems)
    except tomllib.TOMLDecodeError as error:
        fail(f"foretell.toml cannot be read: {error}")
    except OSError as error:
        cause = _cause_of(error)
        if cause is None:
            raise
        fail(cause)


def _cause_of(error: BaseException) -> str | None:
    """Return a failure in words, None for one that only its traceback explains."""
    if isinstance(error, ForetellError):
        return error.message
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        path = "" if error.filename is None else f"{error.filename}: "
        return f"{path}{error.strerror}; make room on the disk of the data folder, and start again"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return None


def _leaf_errors(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves += _leaf_errors(error) if isinstance(error, BaseExceptionGroup) else [error]
    return leaves
