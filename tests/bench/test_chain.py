import io

from rich.console import Console

from foretell.bench.chain import run_bench_chain

TRADES = 400
BATCH = 20
BYTES_PER_TRADE_MAX = 6_000
DEPLOYMENT_BYTES_MAX = 6_000_000


def test_attack_h3_a_state_without_traces_has_a_bounded_number_of_bytes_a_trade() -> None:
    file = io.StringIO()
    seen = run_bench_chain(TRADES, Console(file=file, width=120))
    bound = DEPLOYMENT_BYTES_MAX + BYTES_PER_TRADE_MAX * TRADES
    assert seen.without_traces_bytes < min(bound, seen.state_bytes)
    assert seen.packed_bytes < seen.state_bytes
    assert min(seen.memory_bytes, seen.started_memory_bytes) > seen.without_traces_bytes
    assert f"{TRADES} " in file.getvalue().replace(",", " ")
