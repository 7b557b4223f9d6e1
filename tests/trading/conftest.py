"""The trading product, fresh for each test, its database empty."""

from tests.rigs.trading import alice, bob, database_file, rig  # noqa: F401 - fixtures
