"""Variables of the environment that look like settings of Foretell."""

from collections.abc import Iterable
from typing import Final

from foretell.settings import PREFIX, Settings

TESTS_PREFIX: Final = "FORETELL_TEST_"
OF_CLIENTS: Final = frozenset(
    PREFIX + name for name in ("URL", "KEY_FILE", "KEY_PASSWORD", "SIGNER_URL", "SIGNER_ADDRESS")
)
"""Variables of client commands, which are no settings of an installation."""


def unknown_variables(names: Iterable[str]) -> list[str]:
    """Return the names that look like settings and are not: misspelled ones."""
    known = {PREFIX + name.upper() for name in Settings.model_fields} | OF_CLIENTS
    return sorted(
        name
        for name in names
        if name.upper().startswith(PREFIX)
        and not name.upper().startswith(TESTS_PREFIX)
        and name.upper() not in known
    )
