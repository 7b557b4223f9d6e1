"""The distribution of tests over workers: a group, or else a module, runs in one of them.

What tests of a module share is made once, and not in each worker. A module that takes long begins early, so that no
worker is left alone with it at the end.
"""

from collections.abc import Sequence
from typing import Final

import pytest
from typing_extensions import override
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling

LONG: Final = (
    "tests/e2e/",
    "tests/examples/",
    "tests/faults/",
    "tests/bench/",
    "tests/edge/documents/test_random_requests.py",
    "tests/edge/documents/test_generated_clients.py",
    "tests/contracts/scenarios/",
    "tests/contracts/faulty/",
    "tests/store/queries/",
    "tests/store/index/",
    "tests/app/",
    "tests/settlement/",
    "tests/creation/",
    "tests/ecosystem/",
    "tests/compatibility/",
)
"""Folders and modules of tests that take long, the longest first."""


class ModuleScheduling(LoadGroupScheduling):
    """Gives each worker the next group or module when it has finished one."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by the number of tests, which says little

    @override
    def _split_scope(self, nodeid: str) -> str:
        return super()._split_scope(nodeid).partition("::")[0]


def long_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return tests in the order in which their modules are given to workers."""
    return sorted(items, key=lambda item: place_of(item.nodeid))


def place_of(nodeid: str) -> int:
    """Return the place of a test's module among those that take long, or the one behind them."""
    for place, name in enumerate(LONG):
        if nodeid.startswith(name):
            return place
    return len(LONG)
