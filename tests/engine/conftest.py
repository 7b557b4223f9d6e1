"""An engine within the product that it serves: the fixtures of `tests/trading`."""

from tests.trading.conftest import alice, bob, database_file, rig  # noqa: F401 - fixtures
