"""The commands of `foretell bench`. Each imports what it needs when it is called."""

from typing import Annotated

import typer
from rich.console import Console

bench = typer.Typer(no_args_is_help=True, help="Measure, each figure beside its ceiling.")

Rounds = Annotated[int, typer.Option(min=1, max=50, help="Interleaved rounds.")]


@bench.command()
def order(
    rounds: Rounds = 5,
    orders: Annotated[int, typer.Option(min=100, max=200_000, help="Orders a round.")] = 10_000,
    conns: Annotated[int, typer.Option(min=1, max=512, help="Connections kept open.")] = 32,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Compare so many processes, beside their engines, with a single one.",
            show_default="measure one process",
        ),
    ] = None,
    shards: Annotated[int, typer.Option(min=1, max=64, help="Engines beside --workers.")] = 1,
    postgres: Annotated[
        str | None,
        typer.Option(
            help="A server for the tables of --workers, which get a database of their own.",
            show_default="needed with --workers",
        ),
    ] = None,
) -> None:
    """Orders over HTTP, verified, matched and durable, against signer recoveries of one core.

    With --workers: by several processes, against one process.
    """
    from foretell.bench.order import run_bench_order
    from foretell.bench.rigs.fleet import Size
    from foretell.bench.scale import run_bench_scale
    from foretell.domain.errors.command import BenchFailed

    if workers is None:
        run_bench_order(rounds, orders, conns, Console())
    elif postgres is None:
        raise BenchFailed("several processes meet in PostgreSQL; name one with --postgres")
    else:
        run_bench_scale(rounds, orders, conns, Size(workers, shards), postgres, Console())


@bench.command()
def latency(
    rounds: Rounds = 5,
    orders: Annotated[int, typer.Option(min=100, max=200_000, help="Orders a round.")] = 2_000,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.05,
            max=1.0,
            help="Send orders at this part of the most that there is, answered or not.",
            show_default="one at a time",
        ),
    ] = None,
) -> None:
    """One order at a time, against the steps that it takes and one sync of the disk.

    With --rate: orders that come steadily, slow ones against ordinary ones.
    """
    from foretell.bench.latency import run_bench_latency
    from foretell.bench.steady_rate import run_bench_steady_rate

    if rate is None:
        run_bench_latency(rounds, orders, Console())
    else:
        run_bench_steady_rate(rounds, orders, rate, Console())


@bench.command()
def durable(
    rounds: Annotated[int, typer.Option(min=1, max=50, help="Pairs of rounds.")] = 3,
    orders: Annotated[int, typer.Option(min=100, max=200_000, help="Orders a round.")] = 5_000,
    conns: Annotated[int, typer.Option(min=1, max=512, help="Connections kept open.")] = 32,
) -> None:
    """Orders over HTTP that wait for the disk, against orders that do not."""
    from foretell.bench.durable import run_bench_durable

    run_bench_durable(rounds, orders, conns, Console())


@bench.command()
def match(
    rounds: Rounds = 5,
    commands: Annotated[
        int, typer.Option(min=1_000, max=1_000_000, help="Commands a round, at each depth.")
    ] = 20_000,
) -> None:
    """Orders in memory, by how many rest in the book, and against matching that others wrote."""
    from foretell.bench.match import run_bench_match

    run_bench_match(rounds, commands, Console())


@bench.command()
def journal(
    rounds: Rounds = 5,
    postgres: Annotated[
        str | None,
        typer.Option(
            help="Measure the journal in a database of this address, which must have none.",
            show_default="the journal in files",
        ),
    ] = None,
) -> None:
    """Batches of records until they are durable, against one bare sync of the same bytes."""
    from foretell.app.clock_and_ids import new_word
    from foretell.app.running import set_up_logs
    from foretell.bench.journal import run_bench_journal
    from foretell.bench.postgres_journal import run_bench_postgres_journal
    from foretell.domain.values.hexadecimal import word_bytes
    from foretell.settings import Settings

    if postgres is None:
        run_bench_journal(rounds, Console())
    else:
        set_up_logs(Settings(log_level="warning"))
        run_bench_postgres_journal(postgres, word_bytes(new_word()), rounds, Console())


@bench.command()
def replay(
    rounds: Rounds = 5,
    orders: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="Open orders in the snapshot.")
    ] = 200_000,
    events: Annotated[
        int, typer.Option(min=100, max=10_000_000, help="Commands after the snapshot.")
    ] = 1_000_000,
) -> None:
    """A start from a journal with much in it, against the engine alone in memory."""
    from foretell.bench.replay import run_bench_replay

    run_bench_replay(rounds, orders, events, Console())


@bench.command()
def failover(
    postgres: Annotated[
        str, typer.Option(help="Address of a database, which must have no journal.")
    ],
    cycles: Annotated[int, typer.Option(min=1, max=100, help="Leaders that are killed.")] = 5,
    lease: Annotated[float, typer.Option(min=0.2, max=60, help="Seconds of a lease.")] = 3.0,
) -> None:
    """How long a shard is without a leader when it loses one, against its lease."""
    from foretell.bench.failover import run_bench_failover

    run_bench_failover(postgres, lease, cycles, Console())
