"""The `foretell` command. Each subcommand imports its module when it is called."""

import errno
import os
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic import ValidationError
from rich.console import Console

from foretell.cli.bench import bench
from foretell.cli.environment import unknown_variables
from foretell.cli.failure import fail
from foretell.domain.contracts.networks import NetworkName
from foretell.domain.errors.command import UnknownSetting
from foretell.domain.errors.families import ForetellError
from foretell.settings import Settings

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
PRIVATE_UMASK: Final = 0o077
"""Files and folders that a command creates are for its own user alone."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _default(name: str) -> str:
    """Return the default of a setting, as the help of an option shows it."""
    return str(Settings.model_fields[name].default)


Data = Annotated[
    Path | None,
    typer.Option(help="The data folder.", show_default=_default("data")),
]
Port = Annotated[int | None, typer.Option(help="Port of the APIs.", show_default=_default("port"))]
ChainPort = Annotated[
    int | None, typer.Option(help="Port of the dev chain.", show_default=_default("chain_port"))
]


Shard = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Number of an engine in a separate process.",
        show_default="the engine in the trading process",
    ),
]


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

    run_up(_settings(data=data, port=port, chain_port=chain_port), Console())


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
        settings = _settings(data=data, port=port, shards=shards or 1)
        run_fleet(settings, roles or [], workers, Console())
    else:
        settings = _settings(data=data, port=port, shards=shards)
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

    run_deploy(_settings(data=data), Console(), network, is_check=check)


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

    run_demo(_settings(data=data), Console(), is_all=everything, worker_url=worker_url)


@app.command()
def clients(data: Data = None) -> None:
    """Print the lines with which clients of Polymarket and Kuest use a running `foretell up`."""
    from foretell.cli.clients import client_lines

    typer.echo(client_lines(_settings(data=data)))


@app.command()
def doctor(data: Data = None) -> None:
    """Check that everything needed is installed, and that a running sandbox answers."""
    from foretell.cli.doctor import run_doctor

    run_doctor(_settings(data=data), Console())


app.add_typer(bench, name="bench")

storage = typer.Typer(no_args_is_help=True, help="Store metadata and images permanently.")
app.add_typer(storage, name="storage")


@storage.command()
def push(data: Data = None) -> None:
    """Post every stored item that the service at FORETELL_STORAGE_UPLOAD_URL does not have yet.

    Those from before that setting are posted too. The exchange may run meanwhile. If an item is
    damaged or refused, prints its file's name, continues with the others, and exits with 1.
    """
    from foretell.cli.storage import run_push

    run_push(_settings(data=data), Console())


journal = typer.Typer(
    no_args_is_help=True,
    help="Check, replay or export the journal without changing it, or rebuild the tables from it.",
)
app.add_typer(journal, name="journal")


@journal.command()
def verify(data: Data = None, shard: Shard = None) -> None:
    """Check every record, the hash chain through all of them, and every snapshot.

    Prints a summary. If something is damaged, exits with 1 and prints the position. A journal in
    use is checked up to its mark.
    """
    from foretell.cli.journal import run_verify

    run_verify(_settings(data=data), shard, Console())


@journal.command()
def replay(
    *,
    data: Data = None,
    shard: Shard = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Start with the first command, not a snapshot.")
    ] = False,
) -> None:
    """Replay the journal in memory, and print the resulting state and its hash.

    The hash is the same from the first command and from any snapshot, on any machine.
    """
    from foretell.cli.journal import run_replay

    run_replay(_settings(data=data), shard, Console(), is_from_start=from_start)


@journal.command()
def export(
    data: Data = None,
    shard: Shard = None,
    since: Annotated[
        int | None, typer.Option("--from", min=1, help="First sequence.", show_default="the oldest")
    ] = None,
    until: Annotated[
        int | None, typer.Option("--to", min=1, help="Last sequence.", show_default="the newest")
    ] = None,
) -> None:
    """Write the commands to standard output, one JSON object on each line.

    Old commands are removed after snapshots, unless FORETELL_JOURNAL_KEEPS is all: export them
    regularly to keep them.
    """
    from foretell.cli.journal import run_export

    run_export(_settings(data=data), shard, since, until)


@journal.command()
def rebuild(data: Data = None) -> None:
    """Empty the tables of orders, trades and prices; the next start rebuilds them from the journal.

    Stop the installation first. The journal must be complete from its first command on: set
    FORETELL_JOURNAL_KEEPS=all before the first start.
    """
    from foretell.cli.journal import run_rebuild

    run_rebuild(_settings(data=data), Console())


def _settings(**given: Any) -> Settings:
    unknown = unknown_variables(os.environ)
    if unknown:
        raise UnknownSetting(unknown)
    chosen = {name: value for name, value in given.items() if value is not None}
    return Settings(**chosen)


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
