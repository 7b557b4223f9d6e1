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
from typing import Final

from hypothesis import given, seed, settings
from hypothesis import strategies as st
from tests.contracts.scenarios.runs import run
from tests.contracts.scenarios.scenario import STEP_BYTES

STEPS: Final = 100
STEPS_TOTAL: Final = 1_000_000


def run_counted(script: bytes) -> Counter[str]:
    """Run a scenario, and count its actions and steps."""
    return run(script) + Counter(steps=len(script) // STEP_BYTES)


def run_many(steps: int, from_seed: int) -> Counter[str]:
    """Run scenarios with this many steps, and count their actions."""
    done: Counter[str] = Counter()

    @seed(from_seed)
    @settings(max_examples=-(-steps // STEPS), derandomize=False, database=None, deadline=None)
    @given(script=st.binary(min_size=STEPS * STEP_BYTES, max_size=STEPS * STEP_BYTES))
    def live(script: bytes) -> None:
        done.update(run_counted(script))

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
    sys.stdout.writelines(f"{count:>9} {name}\n" for name, count in done.most_common())
    sys.stdout.write(f"all invariants held for {time.monotonic() - started:.0f} s\n")


if __name__ == "__main__":
    main()
