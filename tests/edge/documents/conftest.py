"""The trading product, which alone needs more than its routes to be asked for its signatures."""

from tests.rigs.trading import alice, database_file, rig  # noqa: F401 - fixtures
