"""The start of a child process: `python -m foretell.runtime.module_start MODULE …` runs the module as a program.

Its imports make hundreds of thousands of objects that all stay, so few searches for garbage are made until
`settle_memory` ends the start.
"""

import runpy
import sys
from typing import Final

from foretell.runtime.core_dumps import forbid_core_dumps
from foretell.runtime.garbage_collection import search_rarely

START: Final = (sys.executable, "-m", "foretell.runtime.module_start")
"""The command, which the name of a module and its arguments follow."""


def main() -> None:
    """Run the module that the first argument names, with the others as its own."""
    forbid_core_dumps()
    search_rarely()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
