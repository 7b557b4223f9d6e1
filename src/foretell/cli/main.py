"""The `foretell` command. Each subcommand imports what it needs when it is called."""

import os
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape

from foretell.bench.commands import bench
from foretell.domain.contracts.networks import NetworkName
from foretell.domain.errors.command import UnknownSetting
from foretell.domain.errors.families import ForetellError
from foretell.settings import Settings, unknown_variables

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _default(name: str) -> str:
    """Return what a setting is if neither an option, the environment nor a file says otherwise."""
    return str(Settings.model_fields[name].default)


Data = Annotated[
    Path | None,
    typer.Option(help="Folder of everything that is kept.", show_default=_default("data")),
]
Port = Annotated[int | None, typer.Option(help="Port of the APIs.", show_default=_default("port"))]
ChainPort = Annotated[
    int | None, typer.Option(help="Port of the dev chain.", show_default=_default("chain_port"))
]


Shard = Annotated[
    int | None,
    typer.Option(min=0, help="An engine in a process of its own.", show_default="the only one"),
]


def _say_version(is_asked: bool) -> None:  # noqa: FBT001 - as typer calls it
    if is_asked:
        typer.echo(f"foretell {version('foretell')}")
        raise typer.Exit


@app.callback()
def say(
    *,
    is_version_asked: Annotated[
        bool,
        typer.Option(
            "--version", callback=_say_version, is_eager=True, help="Say which version this is."
        ),
    ] = False,
) -> None:
    """A whole prediction-market exchange that one person can run."""
    del is_version_asked  # its callback has answered


@app.command()
def up(data: Data = None, port: Port = None, chain_port: ChainPort = None) -> None:
    """Run everything on this machine: chain, contracts, every service, a market to begin with.

    Nothing to configure and no network needed. Ctrl-C stops it; the next start goes on from there.
    """
    from foretell.cli.up import run_up

    run_up(_settings(data=data, port=port, chain_port=chain_port), Console())


@app.command()
def serve(  # noqa: PLR0913, PLR0917 - the options of a command
    roles: Annotated[
        list[str] | None, typer.Argument(help="What this process does.", show_default="everything")
    ] = None,
    data: Data = None,
    port: Port = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Serve trading by so many processes, beside its engines.",
            show_default="one process for all",
        ),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="How many engines share the markets.",
            show_default="1 beside --workers",
        ),
    ] = None,
    shard: Annotated[int, typer.Option(min=0, help="Which engine this one is.")] = 0,
    member: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run chosen roles against a node and a database that are there already.

    Roles: trading, creation, relayer, data, discovery (each an API), settlement, indexer (loops);
    engine and treasury, for trading that is spread over processes.
    A process with one API serves it at `/`; with several, each under its prefix. Needs
    FORETELL_RPC_URL, FORETELL_CHAIN_ID, the keys, and `foretell deploy` to have run.

    `serve trading --workers N --shards M` keeps M engines and N processes that answer clients
    running. `serve engine --shard K` is one engine, and waits while another leads its shard.
    """
    from foretell.cli.serve import ProcessRole, run_fleet, run_serve

    if workers is not None:
        settings = _settings(data=data, port=port, shards=shards or 1)
        run_fleet(settings, roles or [], workers, Console())
    else:
        settings = _settings(data=data, port=port, shards=shards)
        run_serve(settings, roles or [], ProcessRole(shard, member), Console())


@app.command()
def deploy(
    data: Data = None,
    network: Annotated[
        NetworkName | None,
        typer.Option(help="A chain that is known by name.", show_default="the node's own"),
    ] = None,
    *,
    check: Annotated[bool, typer.Option("--check", help="Only compare chain and file.")] = False,
) -> None:
    """Put the contracts on the chain, or complete what was begun, and write deployment.json."""
    from foretell.cli.deploy import run_deploy

    run_deploy(_settings(data=data), Console(), network, is_check=check)


@app.command()
def demo(
    data: Data = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="also an event of three outcomes, and a disputed answer")
    ] = False,
) -> None:
    """Play a market from creation to redemption against what `foretell up` runs.

    Everything goes through the public HTTP and WebSocket APIs and JSON-RPC, as a stranger would.
    With --all the chain's clock is moved on by hours: do that on an installation of its own.
    """
    from foretell.sandbox.demo.command import run_demo

    run_demo(_settings(data=data), Console(), is_all=everything)


@app.command()
def doctor(data: Data = None) -> None:
    """Look whether everything that is needed is there, and whether what runs is well."""
    from foretell.cli.doctor import run_doctor

    run_doctor(_settings(data=data), Console())


app.add_typer(bench, name="bench")

journal = typer.Typer(
    no_args_is_help=True,
    help="Check, replay and export the journal, which is never changed; tell it to the tables anew.",
)
app.add_typer(journal, name="journal")


@journal.command()
def verify(data: Data = None, shard: Shard = None) -> None:
    """Check every record, the chain through all of them, and every snapshot.

    Says what there is; ends with 1 and the place if something is damaged. A journal in use is
    checked as far as its mark vouches for it.
    """
    from foretell.cli.journal import run_verify

    run_verify(_settings(data=data), shard, Console())


@journal.command()
def replay(
    *,
    data: Data = None,
    shard: Shard = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Begin with the first command, not a snapshot.")
    ] = False,
) -> None:
    """Fold the journal into memory, and print what there is in it and the hash of that.

    The hash is the same from the start and from any snapshot, and on any machine.
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

    Whoever wants to keep what snapshots make superfluous exports it now and then.
    """
    from foretell.cli.journal import run_export

    run_export(_settings(data=data), shard, since, until)


@journal.command()
def rebuild(data: Data = None) -> None:
    """Empty the tables of orders, trades and prices; the next start makes them anew from the journal.

    Nothing may run meanwhile, and the journal must be whole from its first command on: set
    FORETELL_JOURNAL_KEEPS=all for that.
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
    """Run the command line; what it may be told of is told in one line, without a trace."""
    try:
        app()
    except ForetellError as error:
        _fail(error.message)
    except ExceptionGroup as group:
        known = [error for error in _leaves(group) if isinstance(error, ForetellError)]
        if not known:
            raise
        _fail(known[0].message)
    except ValidationError as error:
        problems = "; ".join(
            f"FORETELL_{'_'.join(map(str, problem['loc'])).upper()}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False)
        )
        _fail(problems)
    except tomllib.TOMLDecodeError as error:
        _fail(f"foretell.toml cannot be read: {error}")
    except OSError as error:
        if error.filename is None:
            raise
        _fail(f"{error.filename}: {error.strerror}")


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return leaves


def _fail(message: str) -> None:
    console = Console(stderr=True)
    console.print(f"[red]error:[/] {escape(message)}", highlight=False, soft_wrap=True)
    raise SystemExit(1)
