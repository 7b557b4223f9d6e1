"""Commands on what an installation has stored: its items, its index and its journal."""

from typing import Annotated

import typer
from rich.console import Console

from foretell.cli.options import Data, Shard, settings_of

storage = typer.Typer(no_args_is_help=True, help="Store metadata and images permanently.")


@storage.command()
def push(data: Data = None) -> None:
    """Post every stored item that the service at FORETELL_STORAGE_UPLOAD_URL does not have yet.

    Those from before that setting are posted too. The exchange may run meanwhile. If an item is
    damaged or refused, prints its file's name, continues with the others, and exits with 1.
    """
    from foretell.cli.storage import run_push

    run_push(settings_of(data=data), Console())


index = typer.Typer(no_args_is_help=True, help="Compute the sums of the index again.")


@index.command("rebuild")
def rebuild_index(data: Data = None) -> None:
    """Compute leaderboards, totals and wins again beside those that are read, and then replace them.

    The exchange may run meanwhile, and index new blocks. Prints the steps, and the block of the new sums. If the command
    is stopped, the sums stay as they were; run it again.
    """
    from foretell.cli.index import run_rebuild_index

    run_rebuild_index(settings_of(data=data), Console())


verification = typer.Typer(
    no_args_is_help=True, help="Compare what is stored with where it comes from."
)


@verification.command("data")
def check_data(data: Data = None) -> None:
    """Compute positions, volumes, holders, open interest and leaderboards from the chain, and compare.

    Reads all logs of the contracts from the node, up to the last indexed block. The exchange may run
    meanwhile. If any row differs, prints the first ones, and exits with 1.
    """
    from foretell.cli.verification import run_verify_data

    run_verify_data(settings_of(data=data), Console())


journal = typer.Typer(
    no_args_is_help=True,
    help="Check, replay or export the journal without changing it, or rebuild the tables from it.",
)


@journal.command()
def verify(data: Data = None, shard: Shard = None) -> None:
    """Check every record, the hash chain through all of them, and every snapshot.

    Prints a summary. If something is damaged, exits with 1 and prints the position. A journal in
    use is checked up to its mark.
    """
    from foretell.cli.journal import run_verify

    run_verify(settings_of(data=data), shard, Console())


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

    run_replay(settings_of(data=data), shard, Console(), is_from_start=from_start)


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

    run_export(settings_of(data=data), shard, since, until)


@journal.command()
def rebuild(data: Data = None) -> None:
    """Empty the tables of orders, trades, prices and builders; the next start rebuilds them from the journal.

    Stop the installation first. The journal must be complete from its first command on: set
    FORETELL_JOURNAL_KEEPS=all before the first start.
    """
    from foretell.cli.journal import run_rebuild

    run_rebuild(settings_of(data=data), Console())
