"""Run a module of the tests as a program: `python tests/run.py contracts.gas --write`.

Third-party packages install a top-level folder `tests`, which Python would find first.
"""

import runpy
import sys
from pathlib import Path
from types import ModuleType


def main() -> None:
    """Run the module of the first argument, with the other arguments."""
    tests = ModuleType("tests")
    tests.__path__ = [str(Path(__file__).parent)]
    sys.modules["tests"] = tests
    name = sys.argv[1]
    sys.argv = sys.argv[1:]
    runpy.run_module(f"tests.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
