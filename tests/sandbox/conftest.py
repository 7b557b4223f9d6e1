"""Commands are called in this process, with nothing set but what a test sets."""

from tests.rigs.commands import (  # noqa: F401 - fixtures
    call,
    defaults_of_the_logs,
    own_environment,
    settings,
)
