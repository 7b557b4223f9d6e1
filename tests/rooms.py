"""Modules, imports and floors of each package.

    python tests/rooms.py            the packages of this checkout
    python tests/rooms.py FOLDER     those of another source folder, such as an older checkout's `src`

An arrow is an import of one module by another in the same package. A module is one floor above the highest
module that it imports; floors show how deep a reader must go.
"""

import argparse
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

import grimp
from rich.console import Console
from rich.table import Table

SOURCE: Final = Path(__file__).parents[1] / "src"
PACKAGE: Final = "foretell"


def floors_of(graph: grimp.ImportGraph, modules: Iterable[str]) -> int:
    """Return the number of floors of modules that import each other without a circle."""
    inside = frozenset(modules)

    @cache
    def floor(module: str) -> int:
        below = graph.find_modules_directly_imported_by(module) & inside
        return 1 + max((floor(each) for each in below), default=0)

    return max(map(floor, inside), default=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?", type=Path, default=SOURCE)
    sys.path.insert(0, str(parser.parse_args().source.resolve()))
    graph = grimp.build_graph(PACKAGE)
    table = Table("package", "modules", "arrows", "floors")
    for package in sorted(graph.find_children(PACKAGE)):
        modules = {
            module for module in graph.find_descendants(package) if not graph.find_children(module)
        }
        arrows = sum(
            len(graph.find_modules_directly_imported_by(each) & modules) for each in modules
        )
        if modules:
            row = (package, len(modules), arrows, floors_of(graph, modules))
            table.add_row(*map(str, row))
    Console().print(table)


if __name__ == "__main__":
    main()
