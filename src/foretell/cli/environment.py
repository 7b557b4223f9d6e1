"""Variables of the environment that look like settings of Foretell."""

from collections.abc import Iterable
from typing import Final

from foretell.settings import PREFIX, Settings

TESTS_PREFIX: Final = "FORETELL_TEST_"


def unknown_variables(names: Iterable[str]) -> list[str]:
    """Return the names that look like settings and are not: misspelled ones."""
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    return sorted(
        name
        for name in names
        if name.upper().startswith(PREFIX)
        and not name.upper().startswith(TESTS_PREFIX)
        and name.upper() not in known
    )
