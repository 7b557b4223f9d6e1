"""A long run of random lives of the whole exchange.

    python tests/run.py contracts.lives.invariants --steps 1000000 --seed 7

The seed is printed first: the same seed and the same code live the same lives. Where one breaks an
invariant, hypothesis makes it as short as it can and shows its script.
"""

import argparse
import secrets
import sys
import time
from collections import Counter
from typing import Final

from hypothesis import given, seed, settings
from hypothesis import strategies as st
from tests.contracts.lives.life import STEP_BYTES
from tests.contracts.lives.runs import run

STEPS: Final = 100
STEPS_TOTAL: Final = 1_000_000


def lived(script: bytes) -> Counter[str]:
    """Return what was done in a life, and how many steps it had."""
    return run(script) + Counter(steps=len(script) // STEP_BYTES)


def live_on(steps: int, from_seed: int) -> Counter[str]:
    """Live until there were so many steps; return what was done."""
    done: Counter[str] = Counter()

    @seed(from_seed)
    @settings(max_examples=-(-steps // STEPS), derandomize=False, database=None, deadline=None)
    @given(script=st.binary(min_size=STEPS * STEP_BYTES, max_size=STEPS * STEP_BYTES))
    def live(script: bytes) -> None:
        done.update(lived(script))

    live()
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description="Live random lives of the whole exchange.")
    parser.add_argument("--steps", type=int, default=STEPS_TOTAL)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    arguments = parser.parse_args()
    sys.stdout.write(f"seed {arguments.seed}, {arguments.steps} steps\n")
    sys.stdout.flush()
    started = time.monotonic()
    done = live_on(arguments.steps, arguments.seed)
    sys.stdout.writelines(f"{count:>9} {name}\n" for name, count in done.most_common())
    sys.stdout.write(f"nothing broke in {time.monotonic() - started:.0f} s\n")


if __name__ == "__main__":
    main()
