"""A long run of random scenarios of the whole exchange.

    python tests/run.py contracts.scenarios.invariants --steps 1000000 --seed 7

The seed is printed first: the same seed and code give the same scenarios. When one breaks an
invariant, hypothesis shrinks it and prints its script.
"""

import argparse
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.contracts.scenarios.disputes import STEP_BYTES as DISPUTE_STEP_BYTES
from tests.contracts.scenarios.disputes import run_disputes
from tests.contracts.scenarios.life_runs import run_life
from tests.contracts.scenarios.runs import run
from tests.contracts.scenarios.scenario import STEP_BYTES

STEPS: Final = 100
STEPS_TOTAL: Final = 1_000_000
DISPUTE_STEPS: Final = 40
# One step of a dispute, and one of a life of all kinds of markets, for so many of trading.
TRADING_STEPS: Final = 5
MATCHED_SHARE_MIN: Final = 0.3


def matched_share(done: Counter[str]) -> float:
    """Return the share of the steps which try a match that go through."""
    return done["matched"] / (done["match"] + done["ladder"])


def run_counted(script: bytes) -> Counter[str]:
    """Run a scenario, and count its actions and steps."""
    return run(script) + Counter(steps=len(script) // STEP_BYTES)


def run_many(steps: int, from_seed: int, *, is_shrunk: bool = True) -> Counter[str]:
    """Run scenarios with this many steps, and count their actions.

    To shrink a failing one may take minutes.
    """
    return _run_scripts(run_counted, (steps, STEPS, STEP_BYTES), from_seed, is_shrunk=is_shrunk)


def run_many_disputes(steps: int, from_seed: int, *, is_shrunk: bool = True) -> Counter[str]:
    """Run scenarios of optimistic questions, and count their calls."""
    sizes = (steps, DISPUTE_STEPS, DISPUTE_STEP_BYTES)
    return _run_scripts(run_disputes, sizes, from_seed, is_shrunk=is_shrunk)


def run_many_lives(steps: int, from_seed: int, *, is_shrunk: bool = True) -> Counter[str]:
    """Run lives of all kinds of markets side by side, and count their actions."""
    return _run_scripts(run_life, (steps, STEPS, STEP_BYTES), from_seed, is_shrunk=is_shrunk)


def _run_scripts(
    run_script: Callable[[bytes], Counter[str]],
    sizes: tuple[int, int, int],
    from_seed: int,
    *,
    is_shrunk: bool,
) -> Counter[str]:
    done: Counter[str] = Counter()
    total, steps, step_bytes = sizes
    phases = [Phase.generate, Phase.shrink] if is_shrunk else [Phase.generate]

    @seed(from_seed)
    @settings(
        max_examples=-(-total // steps),
        derandomize=False,
        database=None,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    @given(script=st.binary(min_size=steps * step_bytes, max_size=steps * step_bytes))
    def live(script: bytes) -> None:
        done.update(run_script(script))

    live()
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description="Run random scenarios of the whole exchange.")
    parser.add_argument("--steps", type=int, default=STEPS_TOTAL)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    arguments = parser.parse_args()
    sys.stdout.write(f"seed {arguments.seed}, {arguments.steps} steps\n")
    sys.stdout.flush()
    started = time.monotonic()
    done = run_many(arguments.steps, arguments.seed)
    disputes = run_many_disputes(arguments.steps // TRADING_STEPS, arguments.seed)
    lives = run_many_lives(arguments.steps // TRADING_STEPS, arguments.seed)
    shares = {"scenarios": matched_share(done), "lives": matched_share(lives)}
    done += disputes + lives
    sys.stdout.writelines(f"{count:>9} {name}\n" for name, count in done.most_common())
    for name, share in shares.items():
        sys.stdout.write(f"{share:.0%} of the match steps of the {name} matched\n")
    assert min(shares.values()) >= MATCHED_SHARE_MIN
    sys.stdout.write(f"all invariants held for {time.monotonic() - started:.0f} s\n")


if __name__ == "__main__":
    main()
