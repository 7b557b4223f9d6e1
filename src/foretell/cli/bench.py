"""The commands of `foretell bench`. Each imports its module when it is called."""

from typing import Annotated

import typer
from rich.console import Console

bench = typer.Typer(
    no_args_is_help=True, help="Measure the exchange, each figure next to its ceiling."
)

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
            help="Compare so many processes that answer clients with a single process.",
            show_default="measure one process",
        ),
    ] = None,
    shards: Annotated[int, typer.Option(min=1, max=64, help="Engines of --workers.")] = 1,
    postgres: Annotated[
        str | None,
        typer.Option(
            help="A database server for --workers, which make a database of their own there.",
            show_default="needed with --workers",
        ),
    ] = None,
) -> None:
    """Orders over HTTP, verified, matched and durable, against signer recoveries of one core.

    With --workers: orders by several processes, against one process.
    """
    from foretell.bench.order import run_bench_order
    from foretell.bench.rigs.fleet import Size
    from foretell.bench.rigs.order_rounds import OrderPlan
    from foretell.bench.scale import run_bench_scale
    from foretell.domain.errors.command import BenchFailed

    plan = OrderPlan(rounds, orders, conns)
    if workers is None:
        run_bench_order(plan, Console())
    elif postgres is None:
        raise BenchFailed("several processes need PostgreSQL; name a server with --postgres")
    else:
        run_bench_scale(plan, Size(workers, shards), postgres, Console())


@bench.command()
def latency(
    rounds: Rounds = 5,
    orders: Annotated[int, typer.Option(min=100, max=200_000, help="Orders a round.")] = 2_000,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.05,
            max=1.0,
            help="Send orders at this part of the highest rate, whether or not they are answered.",
            show_default="one at a time",
        ),
    ] = None,
) -> None:
    """One order at a time, against the time of its steps and one sync of the disk.

    With --rate: orders at a steady rate, slow ones against ordinary ones.
    """
    from foretell.bench.latency import run_bench_latency
    from foretell.bench.rigs.order_rounds import OrderPlan
    from foretell.bench.steady_rate import run_bench_steady_rate

    plan = OrderPlan(rounds, orders)
    if rate is None:
        run_bench_latency(plan, Console())
    else:
        run_bench_steady_rate(plan, rate, Console())


@bench.command()
def durable(
    rounds: Annotated[int, typer.Option(min=1, max=50, help="Pairs of rounds.")] = 3,
    orders: Annotated[int, typer.Option(min=100, max=200_000, help="Orders a round.")] = 5_000,
    conns: Annotated[int, typer.Option(min=1, max=512, help="Connections kept open.")] = 32,
) -> None:
    """Orders over HTTP that wait for the disk, against orders that do not."""
    from foretell.bench.durable import run_bench_durable
    from foretell.bench.rigs.order_rounds import OrderPlan

    run_bench_durable(OrderPlan(rounds, orders, conns), Console())


@bench.command()
def match(
    rounds: Rounds = 5,
    commands: Annotated[
        int, typer.Option(min=1_000, max=1_000_000, help="Commands a round, at each depth.")
    ] = 20_000,
) -> None:
    """Orders in memory, by the depth of the book, and against other matching engines in Python."""
    from foretell.bench.match import run_bench_match

    run_bench_match(rounds, commands, Console())


@bench.command()
def journal(
    rounds: Rounds = 5,
    postgres: Annotated[
        str | None,
        typer.Option(
            help="Measure a journal in this database, which must not have one.",
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
    """A start from a large journal, against the engine alone in memory."""
    from foretell.bench.replay import run_bench_replay

    run_bench_replay(rounds, orders, events, Console())


@bench.command()
def failover(
    postgres: Annotated[
        str, typer.Option(help="Address of a database, which must not have a journal.")
    ],
    cycles: Annotated[int, typer.Option(min=1, max=100, help="Leaders to kill.")] = 5,
    lease: Annotated[float, typer.Option(min=0.2, max=60, help="Seconds of a lease.")] = 3.0,
) -> None:
    """The time without a leader after a shard loses one, against its lease."""
    from foretell.bench.failover import run_bench_failover

    run_bench_failover(postgres, lease, cycles, Console())
