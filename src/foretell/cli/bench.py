"""The commands of `foretell bench`. Each imports its module when it is called."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

bench = typer.Typer(
    no_args_is_help=True, help="Measure the exchange; each figure is printed next to its ceiling."
)

Rounds = Annotated[int, typer.Option(min=1, max=50, help="Rounds; the figure is their median.")]
Trades = Annotated[int, typer.Option(min=1, max=1_000_000, help="Trades, of each round.")]
Connections = Annotated[
    int, typer.Option("--connections", "--conns", min=1, max=512, help="Connections kept open.")
]
TablesServer = Annotated[
    str | None,
    typer.Option(
        help="Database server; a temporary database is created on it.", show_default="SQLite"
    ),
]
Page = Annotated[
    Path | None,
    typer.Option(help="Page that gets the table and the chart.", show_default="no page"),
]


def _console() -> Console:
    """Return a console that has printed which interpreter runs: figures depend on it."""
    from foretell.runtime.interpreter import running_interpreter

    console = Console()
    console.print(running_interpreter().words(), highlight=False)
    return console


@bench.command("all")
def every(
    rounds: Rounds = 5,
    write: Annotated[
        Path | None,
        typer.Option(help="Page that gets the table, between its two markers, and a chart."),
    ] = None,
    postgres: Annotated[
        str | None,
        typer.Option(
            help="Database without a journal, for failover.", show_default="failover is left out"
        ),
    ] = None,
) -> None:
    """Measure every figure that has a bar, one after the other, and print one table.

    Run it while nothing else runs. Exits with 3 when a bar is missed, and with 75 when other programs
    disturbed a figure, which then is not judged.
    """
    from foretell.bench.all_figures import run_bench_all_figures
    from foretell.bench.suite import Sizes

    sizes = Sizes().with_rounds(rounds)._replace(postgres=postgres)
    code = run_bench_all_figures(sizes, write, _console())
    if code:
        raise typer.Exit(code)


@bench.command()
def book(
    rounds: Rounds = 5,
    rate: Annotated[
        int, typer.Option(min=1, max=10_000, help="Orders a second while the book is read.")
    ] = 200,
) -> None:
    """Measure reads of a book while orders change it, against reads of a constant body."""
    from foretell.bench.book import BookPlan, run_bench_book

    run_bench_book(BookPlan(rounds, rate), _console())


@bench.command()
def data(
    fills: Annotated[
        list[int] | None,
        typer.Option(
            min=1_000,
            max=10_000_000,
            help="Fills of the history; once for each size.",
            show_default="100000 and 1000000",
        ),
    ] = None,
    wallets: Annotated[int, typer.Option(min=1_000, max=1_000_000, help="Wallets.")] = 50_000,
    markets: Annotated[int, typer.Option(min=100, max=100_000, help="Markets.")] = 5_000,
    postgres: TablesServer = None,
    stranger: Annotated[  # noqa: FBT002 - an option of the command
        bool,
        typer.Option(
            "--stranger", help="Measure cheap reads beside the dearest of another client."
        ),
    ] = False,
    write: Page = None,
) -> None:
    """Measure reads of the data and discovery APIs on a generated history, against bare SQL, and their growth.

    Exits with 3 when a bar is missed.
    """
    from foretell.bench.data import DataPlan, run_bench_data

    sizes = tuple(sorted(fills or DataPlan().fills))
    plan = DataPlan(sizes, wallets, markets, postgres=postgres, is_stranger=stranger, page=write)
    if run_bench_data(plan, _console()):
        raise typer.Exit(3)


@bench.command()
def index(
    rounds: Annotated[int, typer.Option(min=2, max=2_000, help="Rounds, of 200 blocks each.")] = 20,
    wallets: Annotated[int, typer.Option(min=100, max=1_000_000, help="Wallets.")] = 10_000,
    markets: Annotated[int, typer.Option(min=10, max=100_000, help="Markets.")] = 1_000,
    postgres: TablesServer = None,
    write: Page = None,
) -> None:
    """Measure logs from a node to the tables, far behind the head, against decoding the same JSON.

    The chain is generated, and a node in a process of its own serves it.
    """
    from foretell.bench.index import IndexPlan, run_bench_index
    from foretell.bench.rigs.index.chain import ChainPlan

    plan = IndexPlan(rounds, ChainPlan(wallets, markets), postgres=postgres, page=write)
    run_bench_index(plan, _console())


@bench.command()
def memory(
    orders: Annotated[int, typer.Option(min=100, max=10**6, help="Resting orders.")] = 200_000,
    commands: Annotated[int, typer.Option(min=10_000, max=10**7, help="Of the day.")] = 400_000,
    seconds: Annotated[
        float, typer.Option(min=1, max=86_400, help="Time for the day, which else ends early.")
    ] = 300.0,
) -> None:
    """Measure the memory of a resting order, and that of a server over a day of orders."""
    from foretell.bench.memory import MemoryPlan, run_bench_memory

    run_bench_memory(MemoryPlan(orders, commands, seconds), _console())


@bench.command()
def order(
    rounds: Rounds = 5,
    orders: Annotated[int, typer.Option(min=100, max=200_000, help="Orders in a round.")] = 10_000,
    connections: Connections = 32,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Compare this number of server processes with a single process.",
            show_default="measure one process",
        ),
    ] = None,
    shards: Annotated[int, typer.Option(min=1, max=64, help="Engines, with --workers.")] = 1,
    postgres: Annotated[
        str | None,
        typer.Option(
            help="Database server for --workers; a temporary database is created on it.",
            show_default="needed with --workers",
        ),
    ] = None,
) -> None:
    """Measure orders over HTTP, verified, matched and durable, against signer recoveries of one core.

    With --workers: measure several server processes, against one process.
    """
    from foretell.bench.order import run_bench_order
    from foretell.bench.rigs.fleet import Size
    from foretell.bench.rigs.order_rounds import OrderPlan
    from foretell.bench.scale import run_bench_scale
    from foretell.domain.errors.command import BenchFailed

    plan = OrderPlan(rounds, orders, connections)
    if workers is None:
        run_bench_order(plan, _console())
    elif postgres is None:
        raise BenchFailed("several processes need PostgreSQL; name a server with --postgres")
    else:
        run_bench_scale(plan, Size(workers, shards), postgres, _console())


@bench.command()
def latency(
    rounds: Rounds = 5,
    orders: Annotated[int, typer.Option(min=100, max=200_000, help="Orders in a round.")] = 2_000,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.05,
            max=1.0,
            help="Send orders at this part of the maximum rate, without waiting for responses.",
            show_default="one at a time",
        ),
    ] = None,
) -> None:
    """Measure one order at a time, against the time of its steps and one sync of the disk.

    With --rate: measure orders at a steady rate, p99 against p50.
    """
    from foretell.bench.latency import run_bench_latency
    from foretell.bench.rigs.order_rounds import OrderPlan
    from foretell.bench.steady_rate import run_bench_steady_rate

    plan = OrderPlan(rounds, orders)
    if rate is None:
        run_bench_latency(plan, _console())
    else:
        run_bench_steady_rate(plan, rate, _console())


@bench.command()
def durable(
    rounds: Annotated[
        int,
        typer.Option(min=1, max=50, help="Pairs of rounds, with and without waiting for the disk."),
    ] = 3,
    orders: Annotated[int, typer.Option(min=100, max=200_000, help="Orders in a round.")] = 5_000,
    connections: Connections = 32,
) -> None:
    """Measure orders over HTTP that wait for the disk, against orders that do not."""
    from foretell.bench.durable import run_bench_durable
    from foretell.bench.rigs.order_rounds import OrderPlan

    run_bench_durable(OrderPlan(rounds, orders, connections), _console())


@bench.command()
def settle(
    rounds: Rounds = 3,
    trades: Trades = 400,
    alone: Annotated[  # noqa: FBT002 - an option of the command
        bool, typer.Option("--alone", help="Settle each trade by a transaction of its own.")
    ] = False,
    orders: Annotated[
        int, typer.Option(min=0, max=1_000, help="Orders a second that are placed beside it.")
    ] = 0,
    write: Page = None,
) -> None:
    """Measure trades from the match to a block, against a chain that mines the same transactions."""
    from foretell.bench.settle import SettlePlan, run_bench_settle

    run_bench_settle(SettlePlan(rounds, trades, alone, orders, write), _console())


@bench.command()
def chain(trades: Trades = 100_000) -> None:
    """Measure the sandbox's chain after many trades: its state, its start, and what waits for it."""
    from foretell.bench.chain import run_bench_chain

    run_bench_chain(trades, _console())


@bench.command()
def limit(
    rounds: Rounds = 5,
    checks: Annotated[
        int, typer.Option(min=1_000, max=10**7, help="Checks, of each kind.")
    ] = 100_000,
) -> None:
    """Measure one check of the rate limits in memory, against a plain counter."""
    from foretell.bench.limit import run_bench_limit

    run_bench_limit(rounds, checks, _console())


@bench.command()
def ws(
    rounds: Rounds = 5,
    orders: Annotated[int, typer.Option(min=10, max=10_000, help="Orders in a round.")] = 200,
    connections: Annotated[
        int,
        typer.Option("--connections", "--conns", min=1, max=8_000, help="Connections that read."),
    ] = 2_000,
    subscriptions: Annotated[
        int, typer.Option(min=1, max=50, help="Markets that each connection subscribes to.")
    ] = 20,
) -> None:
    """Measure deliveries of the market stream to many subscribers, against bare sockets."""
    from foretell.bench.ws import StreamPlan, run_bench_ws

    run_bench_ws(StreamPlan(rounds, orders, connections, subscriptions), _console())


@bench.command()
def match(
    rounds: Rounds = 5,
    commands: Annotated[
        int, typer.Option(min=1_000, max=1_000_000, help="Commands in a round, at each depth.")
    ] = 20_000,
) -> None:
    """Measure matching in memory, by the depth of the book, against other engines in Python."""
    from foretell.bench.match import run_bench_match

    run_bench_match(rounds, commands, _console())


@bench.command()
def journal(
    rounds: Rounds = 5,
    postgres: Annotated[
        str | None,
        typer.Option(
            help="URL of a database without a journal; measure a journal in it.",
            show_default="the journal in files",
        ),
    ] = None,
) -> None:
    """Measure the time until batches are durable, against one plain sync of the same bytes."""
    from foretell.app.clock_and_ids import new_word
    from foretell.app.running import set_up_logs
    from foretell.bench.journal import run_bench_journal
    from foretell.bench.postgres_journal import run_bench_postgres_journal
    from foretell.domain.values.hexadecimal import word_bytes
    from foretell.settings import Settings

    if postgres is None:
        run_bench_journal(rounds, _console())
    else:
        set_up_logs(Settings(log_level="warning"))
        run_bench_postgres_journal(postgres, word_bytes(new_word()), rounds, _console())


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
    """Measure a start from a large journal, against the engine alone in memory."""
    from foretell.bench.replay import run_bench_replay

    run_bench_replay(rounds, orders, events, _console())


@bench.command()
def failover(
    postgres: Annotated[str, typer.Option(help="URL of a database without a journal.")],
    cycles: Annotated[int, typer.Option(min=1, max=100, help="Leaders to kill.")] = 5,
    lease: Annotated[
        float, typer.Option(min=0.2, max=60, help="Duration of a lease in seconds.")
    ] = 3.0,
) -> None:
    """Measure the time without a leader after a shard loses one, against its lease."""
    from foretell.bench.failover import run_bench_failover

    run_bench_failover(postgres, lease, cycles, _console())


@bench.command()
def soak(
    minutes: Annotated[
        float, typer.Option(min=0.1, max=1_440, help="Duration of the load.")
    ] = 60.0,
    orders: Annotated[
        float,
        typer.Option(min=0.1, max=200, help="Orders a second that rest, and are canceled later."),
    ] = 10.0,
    trades: Annotated[
        float, typer.Option(min=0.1, max=20, help="Trades a second, which settle on the chain.")
    ] = 0.5,
    reads: Annotated[
        float, typer.Option(min=0.1, max=200, help="Reads a second, over all APIs in turn.")
    ] = 10.0,
    fill: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=1_000_000,
            help="Orders before, which fill what is kept up to a number.",
            show_default="a quarter more than an engine keeps whole",
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(help="Markdown file for the verdicts; a chart is written beside it."),
    ] = None,
) -> None:
    """Run a whole sandbox under a mixed load, and judge what grows: memory, files, latencies, lags.

    Exits with 1 when an order was lost, a trade did not settle or a request failed, and with 3 when a bar is missed.
    """
    from foretell.bench.rigs.soak.fill import FILLING_ORDERS
    from foretell.bench.rigs.soak.messages import SoakPlan
    from foretell.bench.soak import run_bench_soak

    plan = SoakPlan(minutes, orders, trades, reads, FILLING_ORDERS if fill is None else fill)
    code = run_bench_soak(plan, write, _console())
    if code:
        raise typer.Exit(code)
