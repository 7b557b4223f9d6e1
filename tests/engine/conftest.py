"""An engine within the product that it serves: its fixtures."""

from tests.rigs.trading import alice, bob, database_file, rig  # noqa: F401 - fixtures
