"""The seed of a test run: chosen once, printed at its start, and the same in every worker and rerun."""

import os
import secrets
from typing import Final

VARIABLE: Final = "FORETELL_TEST_SEED"
"""The environment variable with the seed, which the workers and reruns of a run inherit."""

SEED_BITS: Final = 32


def choose_seed() -> None:
    """Choose the seed of this run, unless the environment has one."""
    if not os.environ.get(VARIABLE):
        os.environ[VARIABLE] = str(secrets.randbits(SEED_BITS))


def fresh_seed() -> int:
    """Return the seed of this run."""
    return int(os.environ[VARIABLE])


def seed_header() -> str:
    """Return the line by which a run prints its seed."""
    return f"random seed: {VARIABLE}={fresh_seed()}"
