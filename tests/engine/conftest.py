"""An engine within the product that it serves, as `tests/trading` has it."""

from tests.trading.conftest import alice, bob, database_file, rig  # noqa: F401 - fixtures
