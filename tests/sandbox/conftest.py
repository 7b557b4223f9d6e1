"""Commands are called in this process, without any setting but those of a test."""

from tests.rigs.in_process import (  # noqa: F401 - fixtures
    call,
    defaults_of_the_logs,
    own_environment,
    settings,
)
