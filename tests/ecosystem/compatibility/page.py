"""The page of the documentation that says which methods of which clients work.

A section belongs to a client, and its rows to the client's public methods. The tests that call the methods
write it: `make compatibility`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "compatibility.md"
VARIABLE: Final = "FORETELL_TEST_COMPATIBILITY"
"""If this is set in the environment, the tests write the page instead of comparing with it."""

GREEN: Final = "works"
FOR_PROXY_WALLETS: Final = ", for proxy wallets"
"""Ends the name of a section on what a client of relayers does that is made for their chain."""


def held_against_the_page(client: str, results: Mapping[str, str]) -> None:
    """Write a client's section if that is wanted, else fail if it says something else."""
    lines = [f"| `{method}` | {results[method]} |" for method in sorted(results)]
    section = "\n".join(["| method | result |", "|---|---|", *lines])
    found = sections()
    if os.environ.get(VARIABLE):
        write({**found, client: section})
    else:
        assert found.get(client, "").splitlines() == section.splitlines(), "make compatibility"


def sections() -> dict[str, str]:
    """Return the tables of the page by the names of their clients."""
    parts = PAGE.read_text().split("\n## ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}


def write(found: Mapping[str, str]) -> None:
    """Write the page with these sections, in the order of their names."""
    introduction = PAGE.read_text().partition("\n## ")[0]
    parts = [f"## {client}\n\n{found[client]}" for client in sorted(found)]
    PAGE.write_text("\n\n".join([introduction.strip(), *parts]) + "\n")
