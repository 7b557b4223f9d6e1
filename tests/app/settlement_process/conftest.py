"""The rig of settlement, whose trades a child process settles here."""

from tests.settlement.conftest import (  # noqa: F401 - fixtures
    earlier_exchange,
    market,
    proxy,
    rig,
    traders,
)
